"""What a piece of HTML says, once its tags are known to be closed in order."""

import html.parser


class Outline(html.parser.HTMLParser):
    """Collects the text and that of each summary."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.summaries = [], "", []

    def handle_starttag(self, tag, attributes):
        self.open += [tag] if tag not in {"meta", "br", "link"} else []
        self.summaries += [""] if tag == "summary" else []

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if "summary" in self.open:
            self.summaries[-1] += data


def outline_of(page):
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    return outline

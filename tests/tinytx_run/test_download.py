"""Corpora from a real server on the loopback and from folders; checksums, licences, conversion by bytes."""

import contextlib
import dataclasses
import gzip
import hashlib
import http.server
import io
import json
import random
import re
import socket
import tarfile
import threading
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinytx.tokenizer import canonical
from tinytx_run import conversion, download
from tinytx_run.cli import main
from tinytx_run.conversion import VALID_NOVELS
from tinytx_run.corpora import list_corpora, load_corpus
from tinytx_run.download import CARD, Dataset, FetchError, convert, dataset, datasets, file_name, inspect
from tinytx_run.files import CHECKSUM_FILE, write_folder
from tinytx_run.pairs import list_pair_corpora
from tinytx_run.splits import split_pairs

CONTENT = random.Random(1).randbytes(300_007)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves ``server.content`` by path; the next answers are as ``server.plan`` says, then good ones.

    A plan holds HTTP statuses, "other" (another content) and "cut" (close the connection half way).
    """

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
        order = self.server.plan.pop(0) if self.server.plan else "good"
        body = self.server.content.get(self.path)
        status = order if isinstance(order, int) else 404 if body is None else 200
        body = b"<html>Please log in</html>" if order == "other" else body or b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body[: len(body) // 2 if order == "cut" else None])
        self.close_connection = order == "cut"


@pytest.fixture
def server(monkeypatch):
    """A running server; retries do not pause."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.content, running.plan, running.asked = {}, [], []
        running.url = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def published(server):
    """A corpus of two files on the server, whose layout is the files themselves."""
    files = {"deep/a.txt": CONTENT, "b.txt": b"un\ndeux"}
    sums = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    layout = {"text": {file_name(path): None for path in files}}
    server.content |= {f"/owner/repo/{'c' * 40}/{path}": content for path, content in files.items()}
    return Dataset(
        "small", "for a test", "owner/repo", "c" * 40, "free", "nobody", "as upstream", sums, layout
    )


def get(known, folder, source=None, **how):
    return download.get(known, folder, source=source, report=lambda line: None, **how)


def visible(folder):
    """Everything in a folder but what downloads work in."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return sorted(path for path in found if not path.startswith(".downloads"))


# --- from a server


def test_files_arrive_with_a_card_and_a_second_get_asks_for_nothing(server, published, tmp_path):
    got = get(published, tmp_path, host=server.url)
    assert got.changed and got.complete
    names = ["a.txt", "b.txt", CARD, CHECKSUM_FILE]
    assert visible(tmp_path) == ["small", *(f"small/{name}" for name in names)]
    assert (tmp_path / "small" / "a.txt").read_bytes() == CONTENT
    card = got.card
    assert card["files"]["b.txt"] == {"sha256": published.files["b.txt"], "bytes": 7, "lines": 2}
    assert card["files"]["a.txt"]["lines"] is None, "it holds zeros: no text"
    assert (card["licence"], card["citation"], card["commit"]) == ("free", "nobody", "c" * 40)
    assert card["origin"] == f"downloaded from {server.url}" and card["upstream_checksums"] == published.files
    assert not get(published, tmp_path, host=server.url).changed and len(server.asked) == 2


@pytest.mark.parametrize("plan", [["cut"], [500, 429], ["other"]])
def test_a_transfer_that_fails_is_tried_again(server, published, tmp_path, plan):
    server.plan = list(plan)
    assert get(published, tmp_path, host=server.url).complete
    assert len(server.asked) == 2 + len(plan)


def test_another_content_is_refused_with_both_checksums(server, published, tmp_path, monkeypatch):
    server.plan = ["other"] * 2
    monkeypatch.setattr(download, "RETRIES", 1)
    with pytest.raises(FetchError) as refused:
        get(published, tmp_path, host=server.url)
    for content in (CONTENT, b"<html>Please log in</html>"):
        assert hashlib.sha256(content).hexdigest() in str(refused.value)
    assert visible(tmp_path) == []


def test_files_that_are_complete_are_not_asked_for_again(server, published, tmp_path, monkeypatch):
    server.plan = ["good", 404, 404]
    monkeypatch.setattr(download, "RETRIES", 1)
    with pytest.raises(FetchError, match="404 Client Error.*data get small --from FOLDER"):
        get(published, tmp_path, host=server.url)
    assert len(server.asked) == 3 and visible(tmp_path) == []
    assert get(published, tmp_path, host=server.url).complete
    assert [path.rpartition("/")[2] for path in server.asked[3:]] == ["b.txt"]


def test_an_answer_that_never_ends_is_cut(server, published, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", 100_000)
    with pytest.raises(FetchError, match="must have at most 100,000 bytes, got more"):
        get(published, tmp_path, host=server.url)
    assert len(server.asked) == 1 and visible(tmp_path) == []


def test_what_has_an_address_of_its_own_says_that_it_came_from_there(server, published, tmp_path):
    address, lines = f"{server.url}/{published.repository}/{published.commit}", []
    state = download.get(dataclasses.replace(published, address=address), tmp_path, report=lines.append)
    assert lines[0] == f"small: downloading 2 files from {address}"
    assert state.card["origin"] == f"downloaded from {address}"


def test_without_a_network_the_message_says_how_to_do_without(published, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(FetchError, match=re.escape(host) + ".*data get small --from FOLDER"):
        get(published, tmp_path, host=host)


def test_of_three_at_once_one_downloads(server, published, tmp_path):
    got = []
    work = lambda: got.append(get(published, tmp_path, host=server.url))  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.changed for one in got) == [False, False, True] and len(server.asked) == 2


# --- from a folder


@pytest.fixture
def captions(tmp_path):
    """A corpus of captions in three splits, and a folder with its upstream files."""
    upstream, files, layout = tmp_path / "fetched", {}, {}
    upstream.mkdir()
    for split, n_lines in {"train": 5, "val": 3, "test_2016_flickr": 2}.items():
        layout[split] = {f"{split}.en": n_lines, f"{split}.fr": n_lines}
        for name in layout[split]:
            packed = gzip.compress(f"{name}\n".encode() * n_lines, mtime=0)
            (upstream / f"{name}.gz").write_bytes(packed)
            files[f"data/task1/raw/{name}.gz"] = hashlib.sha256(packed).hexdigest()
    return dataclasses.replace(dataset("multi30k-en-fr"), files=files, layout=layout), upstream


def test_upstream_files_are_taken_under_their_names_or_their_paths(captions, tmp_path):
    known, upstream = captions
    got = get(known, tmp_path / "flat", upstream)
    assert got.changed and got.complete
    assert (tmp_path / "flat" / known.name / "val.fr").read_text() == "val.fr\n" * 3
    deep = tmp_path / "deep" / known.name / "data" / "task1"
    deep.mkdir(parents=True)
    upstream.rename(deep / "raw")
    assert get(known, tmp_path / "again", tmp_path / "deep").files == got.files


def test_nothing_but_the_known_upstream_files_is_taken(captions, tmp_path):
    known, upstream = captions
    made = get(known, tmp_path / "made", upstream).folder
    (upstream / "val.fr.gz").write_bytes(b"cut")
    for source, message in (
        (upstream, r"val\.fr\.gz .*" + known.files["data/task1/raw/val.fr.gz"]),
        (made, "upstream files of multi30k-en-fr .* got 0 of 6, .*train.en.gz"),  # whatever its card says
        (tmp_path / "nowhere", "nowhere"),
    ):
        with pytest.raises(ValueError, match=message):
            get(known, tmp_path / "data", source)
    assert not (tmp_path / "data").exists()


def test_a_folder_of_another_hand_is_compared_with_upstream_and_by_lines(captions, tmp_path):
    known, upstream = captions
    folder = get(known, tmp_path / "data", upstream).folder
    (folder / CHECKSUM_FILE).unlink()
    assert inspect(folder, known).card is None and inspect(folder, known).complete
    (folder / "val.fr").write_text("one\ntwo")
    (fault,) = inspect(folder, known).faults
    assert re.search(r"val\.fr must hold 3 lines, got 2", fault)
    for content, got in ((gzip.compress(b"{}\n" * 50), "50"), (b"junk", "None")):
        write_folder(tmp_path / "imdb", {"train.jsonl.gz": content, CARD: b"{}"})
        (fault,) = inspect(tmp_path / "imdb", dataset("imdb")).faults
        assert f"train.jsonl.gz must hold 25,000 lines, got {got}" in fault
    write_folder(tmp_path / "forged", {"input.txt": b"junk\n" * 40_000, CARD: b"{}"})
    (fault,) = inspect(tmp_path / "forged", dataset("tinyshakespeare")).faults
    assert "86c4e6aa" in fault, "forged checksums do not help a file that upstream has, too"


def test_absent_splits_are_named_and_can_come_later(captions, tmp_path):
    known, upstream = captions
    apart, name = tmp_path / "apart", "test_2016_flickr.fr.gz"
    apart.mkdir()
    (upstream / name).rename(apart / name)
    got = get(known, tmp_path / "data", upstream)
    assert got.absent == ("test_2016_flickr",) and got.card["absent"] == ["test_2016_flickr"]
    assert not get(known, tmp_path / "data", upstream).changed
    with pytest.raises(ValueError, match="train.en"):
        get(known, tmp_path / "data", apart)
    (apart / name).rename(upstream / name)
    assert get(known, tmp_path / "data", upstream).complete


@pytest.mark.parametrize("name", [CARD, CHECKSUM_FILE])
@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000])
def test_a_card_of_another_kind_is_a_fault(captions, tmp_path, name, text):
    known, upstream = captions
    folder = get(known, tmp_path / "data", upstream).folder
    (folder / name).write_text(text)
    state = inspect(folder, known)
    assert not state.files and len(state.faults) == 1 and name in state.faults[0]


def test_damage_is_found_and_replaced_but_files_of_others_never(captions, tmp_path):
    known, upstream = captions
    folder = get(known, tmp_path / "data", upstream).folder
    (folder / "train.en").write_bytes(b"x\0\n" * 5)
    (folder / "val.en").unlink()
    faults = inspect(folder, known).faults
    assert len(faults) == 2 and "train.en" in faults[0] and "val.en" in faults[1]
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="notes.txt"):
        get(known, tmp_path / "data", upstream)
    (folder / "notes.txt").unlink()
    assert get(known, tmp_path / "data", upstream).complete


# --- what is known of each corpus


@pytest.mark.parametrize("name", datasets())
def test_the_registry_says_what_was_written_down(shared_data, name):
    known = dataset(name)
    assert known.licence and known.citation and known.rule
    assert re.fullmatch(r"[0-9a-f]{40}", known.commit) or known.address.startswith("https://")
    notes = (shared_data / "README.md").read_text(encoding="utf-8")
    notes += (shared_data / "eltec-fra" / "plain1.sha256").read_text(encoding="utf-8")
    for said in (known.commit, known.repository, known.address.removeprefix("https://")):
        assert said in notes
    for path, known_sum in known.files.items():
        (line,) = [line for line in notes.splitlines() if known_sum.rpartition(":")[2] in line]
        assert line.endswith(file_name(path)) or f"`{path}`, md5" in line
    for names in ([file_name(path) for path in known.files], list(known.n_lines)):
        assert len({one.lower() for one in names}) == len(names)


def test_every_corpus_that_can_be_downloaded_can_be_read_by_its_name():
    assert set(datasets()) <= {info.name for info in (*list_corpora(), *list_pair_corpora())}
    with pytest.raises(ValueError, match="cls-books.*'wikipedia'"):
        dataset("wikipedia")


# --- conversion


def write(folder, name, content):
    (folder / name).write_bytes(content)
    return folder / name


def test_reviews_are_joined_from_their_subwords(tmp_path):
    subwords = write(tmp_path, "test.review.spm", "▁J ' ai ▁ai mé .\n\n▁Un ▁li vre\n".encode())
    made = convert(dataset("cls-books"), {"cls-books/test.review.spm": subwords})
    assert made["test.review.txt"].decode() == "J'ai aimé.\n\nUn livre\n"
    assert made["test.review.spm"] == subwords.read_bytes()


def test_novels_come_in_order_a_paragraph_a_line(tmp_path):
    texts = {
        "plain1/FRA02501_Loti.txt": " \nI \nUn  marin. \n",
        "plain1/FRA00102_Adam.txt": "Deuxième\u00a0tome \n",
        "plain1/FRA00101_Adam.txt": " \nPremier \n \n\ttome\n",
    }
    known = dataclasses.replace(dataset("eltec-fra"), files=dict.fromkeys(texts, ""))
    upstream = {path: write(tmp_path, file_name(path), text.encode()) for path, text in texts.items()}
    made = convert(known, upstream)
    assert made["corpus.train.txt"].decode() == "Premier\ntome\n\nDeuxième tome\n"
    assert made["corpus.valid.txt"].decode() == "I\nUn marin.\n"
    upstream.popitem()
    assert convert(known, upstream) == {}, "a corpus without one of its novels is another corpus"
    authors = [path.partition("_")[2] for path in dataset("eltec-fra").files]
    assert all(authors.count(f"{novel.partition('_')[2]}.txt") == 1 for novel in VALID_NOVELS)


words = st.sampled_from(["a", "b", "c", "d", "e", "f", "A.", "b !", "don't", "do not"])


@given(st.lists(st.tuples(words, words.map(str.upper)), max_size=30), st.integers(0, 5), st.randoms())
def test_no_sentence_is_in_two_splits_in_whatever_order_pairs_come(rows, n_held_out, rng):
    splits = split_pairs(rows, n_held_out=n_held_out)
    assert sorted(sum(splits.values(), [])) == sorted(set(rows))
    assert max(len(splits["valid"]), len(splits["test"])) <= n_held_out
    for side in (0, 1):
        sentences = [{canonical(row[side]) for row in split} for split in splits.values()]
        assert sum(map(len, sentences)) == len(set().union(*sentences))
    rng.shuffle(rows)
    assert split_pairs(rows, n_held_out=n_held_out) == splits


def test_a_zip_of_pairs_is_split(tmp_path, monkeypatch):
    monkeypatch.setattr(conversion, "PAIRS_HELD_OUT", 10)
    rows = [(f"number {i}", f"numéro {i}") for i in range(60)]
    with zipfile.ZipFile(tmp_path / "fra-eng.zip", "w") as archive:
        archive.writestr("fra.txt", "".join(f"{a}\t{b}\tCC-BY 2.0\n" for a, b in [*rows, *rows[:20]]))
        archive.writestr("_about.txt", "about")
    made = convert(dataset("tatoeba-en-fr"), {"fra-eng.zip": tmp_path / "fra-eng.zip"})
    splits = [[tuple(line.split("\t")) for line in one.decode().splitlines()] for one in made.values()]
    assert list(made) == ["pairs.train.tsv", "pairs.valid.tsv", "pairs.test.tsv"]
    assert [len(split) for split in splits] == [40, 10, 10] and sorted(sum(splits, [])) == sorted(rows)


def zipped(*members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("archive", "said"),
    [
        (zipped(("a.txt", b" " * 800), ("b.txt", b" " * 300)), "unpack to at most 1,000 bytes, got 1,100"),
        (zipped(("../a.txt", b"")), r"with plain names, got '\.\./a.txt'"),
        (zipped(("/etc/a.txt", b"")), "with plain names"),
        (zipped(("C:a.txt", b"")), "with plain names"),
        (zipped(("a/", b"")), "with plain names"),
        (zipped(("a.txt", b"1" * 99))[:-30], "must be a whole zip file"),
        (zipped(("a.txt", b"1")).replace(b"a.txt", b"b.txt", 1), "must be a whole zip file"),
    ],
    ids=range(7),  # an archive holds the time of its making
)
def test_members_of_a_zip_are_small_and_have_plain_names(archive, said, monkeypatch):
    monkeypatch.setattr(conversion, "MAX_UNPACKED", 1_000)
    with pytest.raises(ValueError, match=said):
        conversion.unzip(archive)


KINDS = ("train/pos", "train/neg", "train/unsup", "test/pos", "test/neg")
ARCHIVE = "aclImdb_v1.tar.gz"


def film_archive(folder):
    """Write the archive of film reviews, in small."""
    files = {"train/labeledBow.feat": "9 0:9 1:1"}
    for i, kind in enumerate(KINDS):
        films = "".join(f"http://www.imdb.com/title/tt{i}{n // 2}/usercomments\n" for n in range(11))
        files[kind.replace("/", "/urls_") + ".txt"] = films
        for n in range(11):
            files[f"{kind}/{n}_{7 if kind.endswith('pos') else 0}.txt"] = f"{kind}<br /><br />review {n}"
    with tarfile.open(folder / ARCHIVE, "w:gz") as archive:
        for path, text in sorted(files.items()):
            member = tarfile.TarInfo(f"aclImdb/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


def test_film_reviews_become_json_lines_with_their_films(tmp_path, server):
    film_archive(tmp_path)
    md5, sizes = hashlib.md5((tmp_path / ARCHIVE).read_bytes()), {"train": 22, "unlabelled": 11, "test": 22}
    layout = {split: {f"{split}.jsonl.gz": n} for split, n in sizes.items()}
    known = dataclasses.replace(dataset("imdb"), files={ARCHIVE: f"md5:{md5.hexdigest()}"}, layout=layout)
    state = get(known, tmp_path / "data", tmp_path)
    rows = {}
    for split in sizes:
        lines = gzip.decompress((state.folder / f"{split}.jsonl.gz").read_bytes()).splitlines()
        rows[split] = [json.loads(line) for line in lines]
    assert {split: len(part) for split, part in rows.items()} == sizes and state.complete
    first = {"text": "train/pos review 0", "movie": "tt00", "rating": 7, "label": 1}
    assert rows["train"][0] == first and [row["label"] for row in rows["train"]] == [1] * 11 + [0] * 11
    assert rows["train"][10]["movie"] == "tt05", "reviews are in the order of their numbers"
    assert rows["unlabelled"][3] == {"text": "train/unsup review 3", "movie": "tt21"}
    corpus = load_corpus("imdb", tmp_path / "data")
    assert not set(corpus.train.groups) & set(corpus.valid.groups) and len(corpus.test) == 22
    server.content[f"/{ARCHIVE}"] = (tmp_path / ARCHIVE).read_bytes()
    fetched = get(known, tmp_path / "mirrored", host=server.url)
    assert fetched.files == state.files and fetched.card["source"] == known.address


# --- commands


def call(capsys, *arguments):
    status = main([*map(str, arguments)])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("name", ["cls-books", "reader-reviews-fr", "tinyshakespeare"])
def test_upstream_files_at_hand_are_taken(shared_data, tmp_path, monkeypatch, capsys, name):
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path / "home"))
    status, out, _ = call(capsys, "data", "get", name, "--from", shared_data)
    known, folder = dataset(name), tmp_path / "home" / name
    assert status == 0 and known.licence in out and known.citation in out
    at_hand = {path.name: path.read_bytes() for path in (shared_data / name).iterdir()}
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert made.keys() - at_hand.keys() == {CARD, CHECKSUM_FILE} and made.items() >= at_hand.items()
    status, out, _ = call(capsys, "data", "verify", name, "--json")
    (row,) = json.loads(out)["corpora"]
    assert status == 0 and row["files"] == len(at_hand) and not row["faults"]
    assert row["absent"] == list(known.absent(at_hand))


def test_verify_names_what_is_wrong(shared_data, server, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path))
    assert call(capsys, "data", "verify")[0] == 0
    assert call(capsys, "data", "verify", "cls-books")[0] == 2
    known, file = dataset("tinyshakespeare"), tmp_path / "tinyshakespeare" / "input.txt"
    content = (shared_data / "tinyshakespeare" / "input.txt").read_bytes()
    (path,) = known.files
    server.content[f"/{known.repository}/{known.commit}/{path}"] = content
    assert call(capsys, "data", "get", "tinyshakespeare", "--mirror", server.url)[0] == 0
    assert file.read_bytes() == content
    status, out, _ = call(capsys, "data", "list")
    assert re.search(r"^tinyshakespeare +ready", out, re.MULTILINE)
    file.write_bytes(content + b"and more")
    status, out, _ = call(capsys, "data", "verify")
    assert status == 1 and "input.txt is damaged" in out
    file.write_bytes(content)
    assert call(capsys, "data", "verify", "tinyshakespeare")[0] == 0


def test_verify_says_what_it_compared_with_where_upstream_has_no_such_file(tmp_path, capsys):
    """Sums that somebody wrote next to junk of the right length prove nothing about where it comes from."""
    layout = {name: gzip.compress(b"{}\n" * n) for name, n in dataset("imdb").n_lines.items()}
    write_folder(tmp_path / "imdb", {**layout, CARD: b"{}"})
    status, out, _ = call(capsys, "data", "verify", "imdb", "--data-dir", tmp_path)
    assert status == 0 and "sound by the checksums that lie with them: 3" in out


def test_list_tells_addresses_and_checksums_of_one(capsys):
    status, out, _ = call(capsys, "data", "list", "cls-books")
    known = dataset("cls-books")
    assert status == 0 and all(f"{sha256}  {known.url(path)}" in out for path, sha256 in known.files.items())

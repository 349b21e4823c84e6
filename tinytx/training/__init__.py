"""How models learn, are evaluated and generate: joins `tinytx.model`, `tinytx.text` and `tinytx.world`."""

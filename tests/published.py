"""For the scripts that write measured tables into the documents."""


def replaced(text, mark, body):
    """`text` with `body` between the two comments that name `mark`."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, _, rest = text.partition(begin)
    return before + begin + body + "\n" + end + rest.partition(end)[2]

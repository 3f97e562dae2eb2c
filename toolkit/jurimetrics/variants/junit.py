"""A gate as JUnit XML, which systems of continuous integration read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from jurimetrics.variants.gate_show import line_text

if TYPE_CHECKING:
    from jurimetrics.variants.gate import Gate

# All that XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(gate: Gate, name: str) -> str:
    """The document as text; see `Gate.junit`."""
    counts = gate.frame["outcome"].value_counts()
    totals = {
        "tests": str(len(gate.frame)),
        "failures": str(counts.get("failed", 0)),
        "errors": str(counts.get("inconclusive", 0)),
    }
    root = ElementTree.Element("testsuites", {"name": legal(name), **totals, "time": "0"})
    suite = ElementTree.SubElement(root, "testsuite", {"name": legal(name), **totals, "skipped": "0", "time": "0"})
    told = ElementTree.SubElement(suite, "properties")
    for key, value in (("outcome", gate.outcome), ("level", f"{gate.level:g}"), ("power", f"{gate.power:g}")):
        ElementTree.SubElement(told, "property", {"name": key, "value": value})
    several = len(gate.frame[["variant_old", "variant_new"]].drop_duplicates()) > 1
    for line in gate.frame.to_dict("records"):
        variant = f" [{line['variant_new']}]" if several else ""
        title = {"name": legal(f"{line['metric']} by {line['judge']}{variant}"), "classname": legal(name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", title)
        said = legal(line_text(line))
        if line["outcome"] != "passed":
            kind = "failure" if line["outcome"] == "failed" else "error"
            fault = ElementTree.SubElement(case, kind, {"type": line["outcome"], "message": said})
            fault.text = said
        ElementTree.SubElement(case, "system-out").text = said
    ElementTree.SubElement(suite, "system-out").text = legal("\n".join([gate.verdict, *gate.notes]))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def legal(text: str) -> str:
    r"""Text without what XML cannot hold: control characters and halves of surrogate pairs become U+FFFD.

    >>> legal("a\x00b\ud83dc\n")
    'a\ufffdb\ufffdc\n'
    """
    return _ILLEGAL.sub("\ufffd", text)

from xml.etree import ElementTree

from dpbench.document.compact import compact

DRAWN = """<svg width="10pt" viewBox="0 0 10 10">
 <defs> </defs>
 <g id="figure_1">
  <g id="line2d_1">
   <defs><path id="m1" d="M 0 0 L 0 3.123456" style="stroke: #000000" /></defs>
   <g clip-path="url(#p1)">
    <use href="#m1" x="1.234567" y="2.000000" style="fill: #ff0000" />
    <use href="#m1" x="3.000000" y="4.999999" style="fill: #ff0000" />
   </g>
  </g>
  <g id="text_1">
   <text style="font-size: 8px; font-family: 'DejaVu Sans'; fill: #222222" transform="rotate(-0 1.5 2.5)">a  b</text>
  </g>
  <clipPath id="p1"><rect x="0" y="0" width="5.55555" height="1" /></clipPath>
 </g>
</svg>"""


def compacted():
    root = ElementTree.fromstring(DRAWN)
    compact(root, "chart")
    return root


def test_it_is_smaller_and_draws_the_same():
    assert ElementTree.tostring(compacted(), encoding="unicode") == (
        '<svg width="10pt" viewBox="0 0 10 10" id="chart-svg"><style>#chart-svg .s0{fill: #ff0000}</style>'
        '<defs><path d="M 0 0 L 0 3.12" style="stroke: #000000" id="chart-1" /></defs>'
        '<g clip-path="url(#chart-0)"><use href="#chart-1" x="1.23" y="2" class="s0" />'
        '<use href="#chart-1" x="3" y="5" class="s0" /></g>'
        '<text style="font-size: 8px; fill: #222222">a  b</text>'
        '<clipPath id="chart-0"><rect x="0" y="0" width="5.56" height="1" /></clipPath></svg>'
    )


def test_everything_that_is_referred_to_is_there():
    root = compacted()
    ids = {e.get("id") for e in root.iter()} - {None}
    referred = {e.get("href").removeprefix("#") for e in root.iter() if e.get("href")}
    assert referred <= ids

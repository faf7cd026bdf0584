"""The style sheet of a report: one column of text, wide tables that scroll, light, dark and printed."""

# Okabe and Ito's colours, told apart by most people with colour blindness; brighter ones on dark ground.
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7b4fb5", "#5f6b6d")
DARK = ("#5cb3ea", "#ff8f4a", "#3ecf9f", "#eba0cb", "#e6c34a", "#a3d6f7", "#b79aec", "#a9b4b6")


def _colours(values: tuple[str, ...]) -> str:
    return "".join(f"--k{i}:{value};" for i, value in enumerate(values))


_LIGHT = f"--ink:#1d2327;--soft:#5b666d;--ground:#fff;--rule:#d8dee2;--band:#f4f6f7;{_colours(LIGHT)}"
_DARK = f"--ink:#e4e8ea;--soft:#9aa6ad;--ground:#15191c;--rule:#363e43;--band:#1d2327;{_colours(DARK)}"

STYLE = (
    f":root{{color-scheme:light dark;{_LIGHT}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    f"@media print{{:root{{color-scheme:light;{_LIGHT}}}}}"
    + "".join(f".c{i}{{--k:var(--k{i})}}" for i in range(len(LIGHT)))
    + """
.ct{--k:var(--ink)}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1.25rem 4rem;max-width:88rem;background:var(--ground);color:var(--ink);
 font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .3rem}
h2{font-size:1.15rem;margin:2.4rem 0 .7rem;padding-bottom:.25rem;border-bottom:1px solid var(--rule)}
h3{font-size:1rem;margin:1.4rem 0 .5rem}
p{margin:.5rem 0;max-width:46rem}
.soft,caption,figcaption{color:var(--soft)}
.note{border-left:3px solid var(--k1);padding:.15rem .8rem;background:var(--band);max-width:none}
.wide{overflow-x:auto;margin:.6rem 0 1.1rem}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding-bottom:.35rem}
th,td{padding:.28rem .8rem .28rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
thead th{color:var(--soft);font-weight:600;border-bottom:1px solid var(--soft);vertical-align:bottom}
tbody th{font-weight:500}
.n{text-align:right;padding-left:.8rem;white-space:nowrap}
td,tbody th{overflow-wrap:break-word;max-width:32rem}
thead th.n{white-space:normal}
.short{white-space:nowrap}
.text{min-width:11rem}
code,pre{font:.8rem/1.5 ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
pre{background:var(--band);padding:.7rem .9rem;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}
.charts{display:grid;gap:1.4rem 2rem;margin:1rem 0;
 grid-template-columns:repeat(auto-fill,minmax(min(100%,30rem),1fr))}
figure{margin:0;min-width:0;break-inside:avoid}
figcaption{font-weight:600;font-size:.875rem;margin-bottom:.3rem}
svg{display:block;width:100%;height:auto;max-width:40rem}
svg text{font-size:11.5px;fill:var(--soft)}
svg .name{fill:var(--ink);font-size:12px}
.grid{stroke:var(--rule);stroke-width:1}
.axis{stroke:var(--soft);stroke-width:1}
.line{fill:none;stroke:var(--k);stroke-width:1.8;stroke-linejoin:round}
.under1{stroke-width:4}.under2{stroke-width:6.5}.under3{stroke-width:9}
.line.dashed{stroke-dasharray:6 4;stroke-width:1.4}
.dot{fill:var(--k)}
.ring{fill:none;stroke:var(--k);stroke-width:1.6}
.part{fill:var(--k);stroke:var(--ground);stroke-width:.5}
.legend{font-size:.8rem;color:var(--soft);margin-top:.35rem;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem}
.key{display:inline-block;width:1.3rem;height:0;border-top:3px solid var(--k);vertical-align:middle;
 margin-right:.4rem}
.key.dashed{border-top-style:dashed;border-top-width:2px}
img{max-width:100%;height:auto;background:#fff}
details{margin:.6rem 0}
summary{cursor:pointer;color:var(--soft)}
footer{margin-top:3rem;color:var(--soft);font-size:.8rem}
@media print{body{max-width:none;padding:0;font-size:10pt}h2{break-after:avoid}.wide{overflow:visible}
 tr{break-inside:avoid}thead{display:table-header-group}.charts{grid-template-columns:1fr 1fr;gap:1rem}
 .part,.line,.key,.dot{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
)

# For a piece of a page within somebody else's, in a CSS @scope: colours, tables and charts alone.
_PIECES = (".", "svg", "figure", "table", "caption", "th,", "thead", "tbody", "td,")
SCOPED = STYLE.split("\n", 1)[0].replace(":root", ":scope") + "".join(
    line for line in STYLE.split("\n") if line.startswith(_PIECES) and line.endswith("}")
)

//! How the page looks: like a printed report, by day and by night, on a phone and on paper.

pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --paper: #ffffff; --desk: #f6f6f3; --ink: #1d1f21; --soft: #5b6067; --line: #dcdcd7;
  --grave: #9c2118; --grave-wash: #fbeeec; --notice: #7a4e00; --notice-wash: #fbf3e2; --calm: #1f5f3a; --calm-wash: #edf5ef; }
@media (prefers-color-scheme: dark) { :root { --paper: #1b1d20; --desk: #131517; --ink: #e4e5e7; --soft: #a2a8b0; --line: #363a40;
  --grave: #ff9c90; --grave-wash: #381d1a; --notice: #edc271; --notice-wash: #33290f; --calm: #8ed3a3; --calm-wash: #172c1e; } }
* { box-sizing: border-box; }
html { background: var(--desk); -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 3rem; color: var(--ink); overflow-wrap: anywhere;
  font: 1rem/1.5 system-ui, -apple-system, \"Segoe UI\", Roboto, \"Liberation Sans\", Arial, sans-serif; }
code, pre { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, \"Liberation Mono\", monospace; }
pre { margin: 0; white-space: pre-wrap; }
code { white-space: pre-wrap; }
h1 { margin: .1rem 0 1.25rem; font-size: 1.6rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; }
h1 code { font: inherit; }
h2 { margin: 0 0 .75rem; font-size: 1.05rem; line-height: 1.35; font-weight: 650; }
p { margin: 0 0 .5rem; }
p:last-child { margin-bottom: 0; }
i { font-style: normal; color: var(--notice); }
.kind { margin: 0; color: var(--soft); font-size: .8125rem; letter-spacing: .08em; text-transform: uppercase; }
.verdict { padding: .9rem 1.1rem; border-left: 4px solid; border-radius: 3px; }
.verdict p { color: var(--ink); }
.verdict .word { margin: 0 0 .25rem; font-weight: 650; color: inherit; }
.verdict.calm { color: var(--calm); background: var(--calm-wash); }
.verdict.notice { color: var(--notice); background: var(--notice-wash); }
.verdict.grave { color: var(--grave); background: var(--grave-wash); }
section { margin-top: 1.25rem; padding: 1.1rem 1.25rem; background: var(--paper); border: 1px solid var(--line); border-radius: 6px; }
section.grave > h2 { color: var(--grave); }
section.notice > h2 { color: var(--notice); }
dl { margin: 0; }
dl > div { display: grid; grid-template-columns: 9rem 1fr; column-gap: 1rem; padding: .3rem 0; border-top: 1px solid var(--line); }
dl > div:first-child { border-top: 0; }
dt { grid-column: 1; color: var(--soft); }
dd { grid-column: 2; margin: 0; }
ul { margin: 0; padding-left: 1.2rem; }
li { margin: .25rem 0; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .4rem .75rem .4rem 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; font-weight: 400; }
th:last-child, td:last-child { padding-right: 0; }
thead th { border-top: 0; padding-top: 0; color: var(--soft); font-size: .8125rem; }
table.counts { width: auto; min-width: min(26rem, 100%); }
table.counts td:last-child { text-align: right; font-variant-numeric: tabular-nums; }
table.counts thead th:last-child { text-align: right; }
table.values { margin-top: .6rem; table-layout: fixed; font-size: .9375rem; }
table.values tr > :first-child { width: 30%; }
em { display: block; color: var(--grave); font-size: .8125rem; font-style: normal; }
.change { border-top: 1px solid var(--line); padding: .6rem 0; }
h2 + .change { border-top: 0; padding-top: 0; }
.change:last-child { padding-bottom: 0; }
summary, .only { display: flex; margin: 0; }
summary { cursor: pointer; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::after { content: \"▸\"; margin-left: .75rem; color: var(--soft); }
details[open] > summary::after { content: \"▾\"; }
.what { flex: 1; min-width: 0; }
summary:focus-visible { outline: 2px solid var(--soft); outline-offset: 3px; }
.sign { flex: none; width: 2.6rem; font-family: ui-monospace, \"Liberation Mono\", monospace; color: var(--calm); }
.grave > summary .sign, .grave > .only .sign, .grave > summary .word, .grave > .only .word { color: var(--grave); }
.notice > summary .sign, .notice > .only .sign, .notice > summary .word, .notice > .only .word { color: var(--notice); }
.change .word { color: var(--calm); font-size: .9375rem; }
.data { display: inline-block; padding: 0 .45rem; border-radius: 3px; font-size: .8125rem; font-weight: 650;
  color: var(--grave); background: var(--grave-wash); }
details > :not(summary) { margin-left: 2.6rem; }
details > table { width: calc(100% - 2.6rem); }
.note, .aside { margin-top: .4rem; color: var(--soft); font-size: .9375rem; }
.none { color: var(--soft); font-size: .875rem; }
.veil { padding: 0 .45rem; border-radius: 3px; font-size: .875rem; color: var(--notice); background: var(--notice-wash); }
del, ins { text-decoration: none; border-radius: 2px; }
del { color: var(--grave); background: var(--grave-wash); }
ins { color: var(--calm); background: var(--calm-wash); }
footer { margin: 1.5rem .25rem 0; color: var(--soft); font-size: .8125rem; }
@media (max-width: 40rem) {
  body { padding: 1.25rem .75rem 2rem; }
  section { padding: .9rem .9rem; }
  h1 { font-size: 1.25rem; }
  dl > div { display: block; }
  dt { font-size: .8125rem; }
  .sign { width: 2.4rem; }
  details > :not(summary) { margin-left: 0; }
  details > table { width: 100%; }
  table.values, table.values tbody, table.values tr, table.values th, table.values td { display: block; width: 100%; padding-right: 0; }
  table.values tr > :first-child { width: 100%; }
  table.values thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table.values tr { padding: .4rem 0; border-top: 1px solid var(--line); }
  table.values th, table.values td { border: 0; padding-top: .1rem; padding-bottom: .1rem; }
  table.values.both td::before { content: attr(data-column); display: block; color: var(--soft); font-size: .8125rem; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --desk: #fff; --ink: #000; --soft: #444; --line: #bbb; --grave: #8a1a12; --grave-wash: #fff;
    --notice: #6b4400; --notice-wash: #fff; --calm: #17492c; --calm-wash: #fff; }
  @page { margin: 18mm 16mm; }
  html { font-size: 10pt; }
  body { max-width: none; padding: 0; }
  section { padding: .9rem 0 0; border: 0; border-top: 1px solid var(--line); border-radius: 0; }
  details::details-content { content-visibility: visible; display: block; block-size: auto; }
  summary::after, details[open] > summary::after { content: none; }
  h2, summary { break-after: avoid; }
  tr, li, dl > div { break-inside: avoid; }
  thead { display: table-header-group; }
}
";

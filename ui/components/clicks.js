// Reports clicks on a Plotly chart that Streamlit does not: cells of heat maps, boxes of icicles.
// data.target is the chart's key. Sends {row, col} of a cell or {id} of a box.
export default function ({ data, setTriggerValue }) {
  const selector = `.st-key-${data.target} .js-plotly-plot`;
  let chart = null;

  const onClick = (event) => {
    const point = event?.points?.[0];
    if (!point) return;
    const at = point.pointIndex ?? point.pointNumber;
    if (Array.isArray(at)) setTriggerValue("click", { row: at[0], col: at[1] });
  };
  // An icicle would zoom by itself; the server draws the next level instead.
  const onBox = (event) => {
    const point = event?.points?.[0];
    if (point?.id) setTriggerValue("click", { id: point.id });
    return false;
  };
  const release = () => {
    chart?.removeListener?.("plotly_click", onClick);
    chart?.removeListener?.("plotly_icicleclick", onBox);
  };
  const attach = () => {
    const found = document.querySelector(selector);
    if (!found || typeof found.on !== "function" || found === chart) return;
    release();
    chart = found;
    chart.on("plotly_click", onClick);
    chart.on("plotly_icicleclick", onBox);
    chart.classList.add("px-clickable");
  };

  attach();
  const watcher = new MutationObserver(attach);
  watcher.observe(document.querySelector(".stApp") ?? document.body, { childList: true, subtree: true });
  return () => { watcher.disconnect(); release(); };
}

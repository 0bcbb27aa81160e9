// Tells the slice component which element is picked and which view is shown. Apart from the images, so
// that picking an element does not send them again.
export default function ({ data }) {
  window.pxCursor = data;
  window.dispatchEvent(new Event("px-cursor"));
}

// Waits until a canvas has more colours than that: an empty one has few.
export const drawn = (page, selector, more) => page.waitForFunction(([selector, more]) => {
  const canvas = document.querySelector(selector);
  if (!canvas?.width || !canvas.height) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let at = 0; at < data.length; at += 4) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
  return seen.size > more;
}, [selector, more]);

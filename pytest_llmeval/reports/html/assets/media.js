/** Pictures of this page that are decoded, by the piece that has them. @type {Map<string, Promise<ImageBitmap>>} */
const pictures = new Map();

/** @param {any} value @returns {boolean} Whether a value is an image, a sound or a document. */
function isMedium(value) {
  return typeof value?.media === "string" && (typeof value.sha256 === "string" || typeof value.url === "string");
}

/** @param {any} value @returns {any[]} The images, sounds and documents in a value. */
function mediaIn(value) {
  if (value === null || typeof value !== "object") return [];
  return isMedium(value) ? [value] : Object.values(value).flatMap(mediaIn);
}

/** @param {number} bytes @returns {string} A size as the terminal has it, such as 6.3 kB. */
function sizeText(bytes) {
  if (bytes < 1e3) return `${bytes} B`;
  const [factor, unit] = bytes < 1e6 ? [1e3, "kB"] : bytes < 1e9 ? [1e6, "MB"] : [1e9, "GB"];
  return `${(bytes / factor).toFixed(bytes < 10 * factor ? 1 : 0)} ${unit}`;
}

/** @param {any} form @returns {string} Type, dimensions, size and digest. */
function mediumLine(form) {
  const parts = [form.media, form.width ? `${form.width} x ${form.height}` : null, form.bytes === undefined ? null : sizeText(form.bytes)];
  return [...parts, form.sha256 ? `sha256 ${form.sha256.slice(0, 12)}` : form.url].filter(Boolean).join(", ");
}

/** @param {any} form @returns {{piece?: string, href?: string, path?: string}} Where its content is. */
function contentOf(form) {
  return pageMedia()[form.sha256] || {};
}

/** @param {string} piece @returns {Uint8Array} A content that the page holds. */
function bytesOf(piece) {
  return Uint8Array.from(atob(document.getElementById(piece).textContent), (each) => each.charCodeAt(0));
}

/** @param {any} form @returns {Promise<ImageBitmap>} Only pixels are made of it, never markup. */
function pictureOf(form) {
  const { piece } = contentOf(form);
  if (!pictures.has(piece)) pictures.set(piece, createImageBitmap(new Blob([bytesOf(piece)], { type: form.media })));
  return pictures.get(piece);
}

/** @param {any} form @returns {boolean} Whether the page can draw it. */
function isPicture(form) {
  return isMedium(form) && form.media.startsWith("image/") && Boolean(contentOf(form).piece);
}

/** @param {any} form @returns {Element} */
function drawMedium(form) {
  const { piece, href, path } = contentOf(form);
  const line = mediumLine(form);
  return h(
    "div",
    { class: "medium" },
    isPicture(form) ? drawPictures([form], line) : null,
    piece && form.media.startsWith("audio/") ? drawPlayer(piece) : null,
    h("p", { class: "quiet" }, href ? h("a", { href }, line) : [line, path].filter(Boolean).join(", ")),
  );
}

/** @param {any[]} forms One picture, or two of one size, of which the difference is drawn. @param {string} text @returns {Element} */
function drawPictures(forms, text) {
  const [{ width, height }] = forms;
  const canvas = h("canvas", { class: "picture", width, height, role: "img", "aria-label": text });
  const drawing = canvas.getContext("2d");
  Promise.all(forms.map(pictureOf)).then(
    (found) =>
      found.forEach((each, at) => {
        drawing.globalCompositeOperation = at ? "difference" : "source-over";
        drawing.drawImage(each, 0, 0);
        canvas.dataset.drawn = String(at + 1);
      }),
    () => canvas.remove(),
  );
  return canvas;
}

/** @param {any} expected @param {any} answer @returns {Element|null} How two pictures of one size differ. */
function drawPictureDifference(expected, answer) {
  const [one, other] = [mediaIn(expected)[0], mediaIn(answer)[0]];
  if (!isPicture(one) || !isPicture(other) || one.sha256 === other.sha256) return null;
  return one.width === other.width && one.height === other.height ? drawPictures([one, other], t("Difference")) : null;
}

/** @param {string} piece A sound. @returns {Element} A button that plays it, and stops it while it plays. */
function drawPlayer(piece) {
  /** @type {AudioBufferSourceNode|null} */
  let sound = null;
  const toggle = async () => {
    if (sound) return sound.stop();
    const player = new AudioContext();
    const source = player.createBufferSource();
    button.disabled = true;
    try {
      source.buffer = await player.decodeAudioData(bytesOf(piece).buffer);
    } catch {
      button.remove(); // it is no sound, or one that this browser does not play; its line stays
      return player.close();
    }
    source.connect(player.destination);
    source.addEventListener("ended", () => {
      sound = null;
      button.textContent = t("Play");
      player.close();
    });
    source.start();
    sound = source;
    button.disabled = false;
    button.textContent = t("Stop");
  };
  const button = h("button", { type: "button", click: toggle }, t("Play"));
  return button;
}

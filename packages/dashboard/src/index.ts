/** Folder of the built pages: `index.html`, a template, and what it loads, in `assets/`; in `viewer/` that of the API. */
export const site = new URL('./site/', import.meta.url);

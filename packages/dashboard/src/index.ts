/** Folder of the built pages: `index.html`, a template, and what it loads, in `assets/`. */
export const site = new URL('./site/', import.meta.url);

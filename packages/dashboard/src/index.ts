/** The template `index.html`, its `assets/`, and the API's `viewer/`. */
export const site = new URL('./site/', import.meta.url);

import { computed } from '@preact/signals';
import { href, path } from './location.js';

/** Id of the project whose pages are shown; undefined outside of projects. */
export const projectId = computed(() => /^\/projects\/([^/]+)/.exec(path.value)?.[1]);

/** Path of a page of the shown project: `projectPath('/events')`. */
export function projectPath(to: string): string {
  return `/projects/${projectId.value ?? ''}${to}`;
}

/** Address of a page of the shown project, for a link. */
export function projectHref(to: string): string {
  return href(projectPath(to));
}

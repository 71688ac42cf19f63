import { computed } from '@preact/signals';
import { href, path } from './location.js';

/** Pages of a project: for its users, or in the portal for the owner of some of its endpoints. */
const PLACE = /^\/(projects|portal)\/([^/]+)/;
const place = computed(() => PLACE.exec(path.value));

/** Id of the project whose pages are shown; undefined outside of projects. */
export const projectId = computed(() => place.value?.[2]);

/** Whether the portal is shown. */
export const isPortal = computed(() => place.value?.[1] === 'portal');

/** Path of a page of the shown project, in the portal of that: `projectPath('/events')`. */
export function projectPath(to: string): string {
  return `/${isPortal.value ? 'portal' : 'projects'}/${projectId.value ?? ''}${to}`;
}

/** Address of a page of the shown project, for a link. */
export function projectHref(to: string): string {
  return href(projectPath(to));
}

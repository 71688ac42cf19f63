import { computed } from '@preact/signals';
import { href, path } from './location.js';

/** A project page: of the dashboard, or of the portal for an endpoint owner. */
const PLACE = /^\/(projects|portal)\/([^/]+)/;
const place = computed(() => PLACE.exec(path.value));

/** Id of the shown project; undefined outside projects. */
export const projectId = computed(() => place.value?.[2]);

export const isPortal = computed(() => place.value?.[1] === 'portal');

/** Path of a page of the shown project or its portal: `projectPath('/events')`. */
export function projectPath(to: string): string {
  return `/${isPortal.value ? 'portal' : 'projects'}/${projectId.value ?? ''}${to}`;
}

export function projectHref(to: string): string {
  return href(projectPath(to));
}

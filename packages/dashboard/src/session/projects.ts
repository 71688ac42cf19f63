import type { Project } from '@gateway/client';
import { signal } from '@preact/signals';
import { accountApi } from '../api/client.js';
import { storeOf } from '../router/storage.js';

/** The projects of the user; undefined before they were read. More than these are found by their link. */
export const projects = signal<readonly Project[] | undefined>(undefined);
export const projectsProblem = signal<Error | undefined>(undefined);

const MOST = 100;
const LAST = 'gateway-project';
const store = storeOf('localStorage');

/** Reads the projects for the switch. */
export async function readProjects(): Promise<void> {
  try {
    const { content } = await accountApi().projects.list({ perPage: MOST }).page();
    projects.value = content;
    projectsProblem.value = undefined;
  } catch (error) {
    projectsProblem.value = error as Error;
  }
}

/** Id of the project that was shown last in this browser. */
export function rememberedProject(): string | undefined {
  return store.get(LAST) ?? undefined;
}

/** The project that was shown last in this browser, if it is still there, or the first. */
export function preferredProject(): Project | undefined {
  const last = rememberedProject();
  return projects.value?.find(({ uid }) => uid === last) ?? projects.value?.[0];
}

/** Opens with this project the next time. */
export function rememberProject(id: string): void {
  store.set(LAST, id);
}

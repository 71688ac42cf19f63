import type { Project } from '@gateway/client';
import { signal } from '@preact/signals';
import { accountApi } from '../api/client.js';
import { storeOf } from '../router/storage.js';

/** The user's projects, at most 100; undefined until they are read. Links open the others. */
export const projects = signal<readonly Project[] | undefined>(undefined);
export const projectsProblem = signal<Error | undefined>(undefined);

const MOST = 100;
const LAST = 'gateway-project';
const store = storeOf('localStorage');

export async function readProjects(): Promise<void> {
  try {
    const { content } = await accountApi().projects.list({ perPage: MOST }).page();
    projects.value = content;
    projectsProblem.value = undefined;
  } catch (error) {
    projectsProblem.value = error as Error;
  }
}

export function rememberedProject(): string | undefined {
  return store.get(LAST) ?? undefined;
}

/** The project shown last in this browser, if it still exists, or the first. */
export function preferredProject(): Project | undefined {
  const last = rememberedProject();
  return projects.value?.find(({ uid }) => uid === last) ?? projects.value?.[0];
}

export function rememberProject(id: string): void {
  store.set(LAST, id);
}

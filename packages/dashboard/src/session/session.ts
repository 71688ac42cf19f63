import { GatewayApiError, type Project, type Session } from '@gateway/client';
import { computed, effect, signal } from '@preact/signals';
import { accountApi, forgetResources, refusals, setCsrfToken } from '../api/index.js';
import { isOwnPath, isPortal, path, projectId } from '../router/location.js';
import { storeOf } from '../router/storage.js';
import { portal } from './portal.js';

/** Null if signed out, undefined until the server responds. */
export const session = signal<Session | null | undefined>(undefined);

export const sessionProblem = signal<Error | undefined>(undefined);

export async function readSession(): Promise<void> {
  try {
    begin(await accountApi().auth.session());
  } catch (error) {
    if (error instanceof GatewayApiError && error.status === 401) end();
    else sessionProblem.value = error as Error;
  }
}

export async function signIn(email: string, password: string): Promise<void> {
  begin(await accountApi().auth.login({ email, password }));
}

/** Per tab: the page to return to after signing in at the provider. */
const LEFT = 'gateway-left';

export async function leaveForProvider(): Promise<void> {
  const { url } = await accountApi().auth.startOidc();
  sessionStorage.setItem(LEFT, path.value + location.search);
  location.assign(url);
}

/**
 * With the query of the provider's redirect. Returns the path of the page that the user had left.
 * Rejects with the API's error.
 */
export async function returnFromProvider(): Promise<string> {
  begin(await accountApi().auth.completeOidc({ query: location.search }));
  const left = sessionStorage.getItem(LEFT) ?? '/';
  sessionStorage.removeItem(LEFT);
  return isOwnPath(left) ? left : '/';
}

export async function signOut(): Promise<void> {
  await accountApi()
    .auth.logout()
    .catch(() => undefined);
  end();
}

export function begin(begun: Session): void {
  setCsrfToken(begun.csrf_token);
  sessionProblem.value = undefined;
  session.value = begun;
}

function end(): void {
  setCsrfToken(undefined);
  forgetResources();
  newKey.value = undefined;
  session.value = null;
}

effect(() => {
  if (refusals.value > 0 && session.peek()) end();
});

/**
 * An API key just created here. The API returns it only once, so it is kept until the dashboard is
 * reloaded or the session ends.
 */
export const newKey = signal<{ readonly projectId: string; readonly key: string } | undefined>(
  undefined,
);

/** At most 100. Undefined until read. Links can open others. */
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

/** The project last shown in this browser if it still exists, otherwise the first. */
export function preferredProject(): Project | undefined {
  const last = rememberedProject();
  return projects.value?.find(({ uid }) => uid === last) ?? projects.value?.[0];
}

export function rememberProject(id: string): void {
  store.set(LAST, id);
}

export type MemberRole = Session['organisations'][number]['role'];
const RANK: Readonly<Record<MemberRole, number>> = { viewer: 0, member: 1, admin: 2, owner: 3 };

export function roleIn(organisationId: string | undefined): MemberRole | undefined {
  return session.value?.organisations.find(({ uid }) => uid === organisationId)?.role;
}

/** In the current project's organisation. Undefined while unknown. */
const role = computed<MemberRole | undefined>(() =>
  isPortal.value
    ? 'viewer'
    : roleIn(projects.value?.find(({ uid }) => uid === projectId.value)?.organisation_id),
);

/**
 * By default, the user's role in the current project. True while the role is unknown: this only
 * hides controls, and the server enforces permissions.
 */
export function may(wanted: MemberRole, own = role.value): boolean {
  return own === undefined || RANK[own] >= RANK[wanted];
}

/** In the portal, whether the link allows it. */
export function mayManage(): boolean {
  return isPortal.value ? portal.value?.can_manage_endpoint === true : may('member');
}

export function maySend(): boolean {
  return isPortal.value || may('member');
}

import { GatewayApiError, type Project, type Session } from '@gateway/client';
import { computed, effect, signal } from '@preact/signals';
import { accountApi, refusals, setCsrfToken } from '../api/client.js';
import { forgetResources } from '../api/read.js';
import { isOwnPath, isPortal, path, projectId } from '../router/location.js';
import { storeOf } from '../router/storage.js';
import { portal } from './portal.js';

/** The session; null if signed out, undefined until the server answers. */
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

/** Rejects with the API's error. */
export async function signIn(email: string, password: string): Promise<void> {
  begin(await accountApi().auth.login({ email, password }));
}

/** Key of the page to return to after signing in at the provider, per tab. */
const LEFT = 'gateway-left';

/** Redirects to the OpenID Connect provider. Rejects with the API's error. */
export async function leaveForProvider(): Promise<void> {
  const { url } = await accountApi().auth.startOidc();
  sessionStorage.setItem(LEFT, path.value + location.search);
  location.assign(url);
}

/**
 * Signs in with the query of the provider's redirect. Returns the page to continue with. Rejects
 * with the API's error.
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

/** Starts a new session, for example after an invitation. */
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

/** Shows the sign-in page once the server refuses the session. */
effect(() => {
  if (refusals.value > 0 && session.peek()) end();
});

/** A key just created here. The API returns it once; it is kept until the dashboard reloads. */
export const newKey = signal<{ readonly projectId: string; readonly key: string } | undefined>(
  undefined,
);

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

export type MemberRole = Session['organisations'][number]['role'];
const RANK: Readonly<Record<MemberRole, number>> = { viewer: 0, member: 1, admin: 2, owner: 3 };

/** The user's role in an organisation; undefined if unknown. */
export function roleIn(organisationId: string | undefined): MemberRole | undefined {
  return session.value?.organisations.find(({ uid }) => uid === organisationId)?.role;
}

/** The user's role in the organisation of the shown project; undefined while unknown. */
const role = computed<MemberRole | undefined>(() =>
  isPortal.value
    ? 'viewer'
    : roleIn(projects.value?.find(({ uid }) => uid === projectId.value)?.organisation_id),
);

/**
 * True if a role, by default the user's role in the shown project, includes another. Only hides
 * controls: the server decides.
 */
export function may(wanted: MemberRole, own = role.value): boolean {
  return own === undefined || RANK[own] >= RANK[wanted];
}

/** True if the user can change endpoints and subscriptions; in the portal, the link decides. */
export function mayManage(): boolean {
  return isPortal.value ? portal.value?.can_manage_endpoint === true : may('member');
}

/** True if the user can resend deliveries and send test events. */
export function maySend(): boolean {
  return isPortal.value || may('member');
}

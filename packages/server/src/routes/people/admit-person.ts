import { GatewayError } from '@gateway/core/errors';
import type { Role } from '@gateway/store/config';
import {
  findInvitationsTo,
  findOrganisation,
  findUserByEmail,
  findUserByIdentity,
  insertIdentity,
  insertMember,
  insertUser,
  markAccepted,
  organisationsOfUser,
  putFirst,
  takeOver,
  type TakenOver,
  type UserRow,
} from '@gateway/store/people';
import { type OpenCall } from '../../api/vocabulary.js';
import type { OidcPerson } from '../../auth/oidc/person.js';
import { auditSignIn, takenOver } from './session.js';

interface Admitted {
  readonly user: UserRow;
  readonly joined: readonly Joined[];
  /** The credentials revoked because the account's email address was unproven. */
  readonly taken: TakenOver | undefined;
}

interface Joined {
  readonly organisation_id: string;
  readonly role: Role;
}

/**
 * The user is the one linked to the provider's identity, else the one with its email address, who
 * is then linked, else a new one. An account with an unproven address is taken over, which ends its
 * other credentials. Open invitations to the address are accepted, and a new person also joins
 * `oidc.organisation`. Throws `oidc_refused` if the person may not sign in.
 */
export async function admitPerson(call: OpenCall, person: OidcPerson): Promise<Admitted> {
  const { database, records } = call;
  const known = await findUserByIdentity(database.knex, person);
  const email = trustedEmail(call, person, known !== undefined);
  const admitted = await database.knex.transaction(async (trx): Promise<Admitted> => {
    const invitations = email === undefined ? [] : await findInvitationsTo(trx, email);
    const found = known ?? (email === undefined ? undefined : await findUserByEmail(trx, email));
    if (!found && invitations.length === 0 && call.config.oidc.organisation === undefined)
      throw refused(
        person,
        'no one has invited this address',
        'ask an admin of the organisation to invite it, and sign in again',
      );
    const { first_name, last_name } = person;
    const user =
      found ??
      (await insertUser(trx, {
        email: email!,
        first_name,
        last_name,
        passwordHash: '',
        isProven: true,
      }));
    if (!known && !(await insertIdentity(trx, user.id, person)))
      throw refused(
        person,
        'its account is linked to another identity at the provider',
        'ask the operator of this gateway to unlink that person',
      );
    const taken = found && (await takeOver(trx, user.id, person));
    // A person who takes over an account counts as new: others can create an account and
    // invitations for an address before its owner signs in.
    const own = !found || (taken && !known) ? await joining(call) : undefined;
    const joined = [...(own ? [own] : []), ...invitations];
    for (const { organisation_id: organisationId, role } of joined)
      await insertMember(trx, { organisationId, userId: user.id, role });
    if (own) await putFirst(trx, { organisationId: own.organisation_id, userId: user.id });
    for (const invitation of invitations) await markAccepted(trx, invitation);
    if (taken) {
      const organisations = await organisationsOfUser(trx, user.id);
      const entry = { action: 'auth.takeOver', keyId: null, organisations };
      await auditSignIn(trx, call, user, entry, () => takenOver(taken));
    }
    return { user, joined, taken };
  });
  const { user, joined, taken } = admitted;
  if (joined.length > 0 || taken)
    await records.forget({ users: [user.id], masks: taken?.masks ?? [] });
  return admitted;
}

/**
 * Undefined if the address is not reliable. Throws `oidc_refused` if its domain is not allowed, or
 * if a reliable address is required.
 */
function trustedEmail(
  { config }: OpenCall,
  person: OidcPerson,
  isKnown: boolean,
): string | undefined {
  const { require_verified_email: mustBeVerified, allowed_domains: domains } = config.oidc;
  const { email, isEmailVerified = !mustBeVerified } = person;
  const domain = email?.slice(email.lastIndexOf('@') + 1).toLowerCase();
  if (domains.length > 0 && !domains.some((it) => it.toLowerCase() === domain))
    throw refused(
      person,
      'its email domain is not allowed',
      'sign in at the provider with your account of the organisation',
    );
  if (email !== undefined && isEmailVerified) return email;
  if (isKnown && domains.length === 0) return undefined;
  if (email === undefined)
    throw refused(
      person,
      'the provider returned no email address in printable ASCII',
      'ask the operator of this gateway to check oidc.scopes',
    );
  throw refused(
    person,
    'the provider has not verified the address',
    'verify it at the provider, and sign in again',
  );
}

/**
 * For a new person without an invitation. Throws `oidc_unavailable` if the organisation does not
 * exist.
 */
async function joining({ config, database }: OpenCall): Promise<Joined | undefined> {
  const { organisation, role } = config.oidc;
  if (organisation === undefined) return undefined;
  if (!(await findOrganisation(database.knex, organisation)))
    throw new GatewayError('oidc_unavailable', {
      reason: 'oidc.organisation names an organisation that does not exist',
    });
  return { organisation_id: organisation, role };
}

function refused(
  { email = 'a person without an email address' }: OidcPerson,
  reason: string,
  fix: string,
) {
  return new GatewayError('oidc_refused', { email, reason, fix });
}

export { type AuditEntry, type AuditRow, insertAuditEntries, listAuditLog } from './audit-log.js';
export { claimRequest, finishRequest, releaseRequest } from './idempotent-requests.js';
export {
  findUserByIdentity,
  type Identity,
  insertIdentity,
  takeOver,
  type TakenOver,
} from './identities.js';
export {
  countOpenInvitations,
  findInvitationsTo,
  findOpenInvitation,
  insertInvitation,
  type InvitationRow,
  listInvitations,
  markAccepted,
  revokeInvitation,
} from './invitations.js';
export {
  changeMember,
  deleteOrganisation,
  findMember,
  findOrganisation,
  insertMember,
  insertOrganisation,
  listMembers,
  listOrganisations,
  type MemberRow,
  type Membership,
  organisationsOfUser,
  type OrganisationRow,
  putFirst,
  updateOrganisation,
} from './organisations.js';
export { hashPassword } from './passwords.js';
export {
  type BootstrappedUser,
  bootstrapUser,
  changePassword,
  findUser,
  findUserByEmail,
  findUserByPassword,
  hasPassword,
  insertUser,
  isEmail,
  isInstanceAdmin,
  updateUser,
  type UserRow,
} from './users.js';

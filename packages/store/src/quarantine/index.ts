export { findQuarantine, listQuarantine, type QuarantineEntry, type QuarantineSelection } from './listing.js';
export {
  discardQuarantinedMessage,
  findQuarantinedMessage,
  listQuarantinedMessages,
  quarantinedBytes,
  type QuarantinedMessageRow,
  type QuarantinedMessageWhole,
  type QuarantineStatus,
} from './log.js';
export { type QuarantinedMessage, quarantineMessages } from './quarantine.js';
export {
  discardQuarantinedMessages,
  dropReplayedMessage,
  editQuarantinedMessage,
  type QuarantineRef,
  readReplayable,
  refuseReplayedMessage,
  type ReplayableMessage,
  replayQuarantinedMessage,
} from './replay.js';

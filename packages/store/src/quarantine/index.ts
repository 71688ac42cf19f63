export {
  findQuarantinedMessage,
  listQuarantinedMessages,
  quarantinedBytes,
  type QuarantinedMessage,
  type QuarantinedMessageRow,
  type QuarantinedMessageWhole,
  quarantineMessages,
  type QuarantineStatus,
} from './messages.js';
export {
  discardQuarantinedMessages,
  dropReplayedMessage,
  editQuarantinedMessage,
  type QuarantineRef,
  readReplayable,
  rejectReplayedMessage,
  type ReplayableMessage,
  replayQuarantinedMessage,
} from './replay.js';
export {
  findQuarantine,
  listQuarantine,
  type QuarantineEntry,
  type QuarantineSelection,
  type QuarantineStep,
  selectQuarantined,
} from './selection.js';

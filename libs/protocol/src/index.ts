export { EPOCH_LENGTH, isEpoch, makeEpoch } from './epoch.ts';
export type { Epoch } from './epoch.ts';
export { ERROR_TABLE, RESUMPTION_REASONS, wireError, resumptionError } from './errors.ts';
export type { RetryAdvice, ErrorCode, ResumptionReason, JsonRpcErrorObject, ResumptionRejected } from './errors.ts';
export {
  MAX_EVENT_ID_LENGTH,
  CHAIN_BYTES,
  streamTag,
  startChain,
  extendChain,
  equalBytes,
  formatEventId,
  parseEventId,
} from './event-id.ts';
export type { EventId } from './event-id.ts';
export {
  formatBatchIds,
  formatTarget,
  isIdempotencyKey,
  makeRecord,
  readEventRecord,
  readInboundRecord,
  streamOfRequest,
} from './event-record.ts';
export type { BatchPlace, StreamTarget, EventBody, EventRecord, InboundRecord, Unreadable } from './event-record.ts';
export {
  RECORD_FORMAT,
  HEADER,
  INBOUND_TYPE,
  EVENT_TYPE,
  STANDALONE,
  NO_PREDECESSOR,
  HTTP_HEADER,
  LEGACY_VERSIONS,
  isLegacyVersion,
  isOlderVersion,
  isLaterVersion,
  canPrime,
  canBatch,
  FIRST_VERSION_WITH_PRIMING,
  BATCH_VERSION,
} from './headers.ts';
export type { LegacyVersion } from './headers.ts';
export { isJsonRpcId, classifyMessage, classifyText, errorResponse, findClientFault } from './json-rpc.ts';
export type { JsonRpcRequest, JsonRpcNotification, JsonRpcResponse, JsonRpcMessage, Classified } from './json-rpc.ts';
export { MAX_PARTITION, parseOffset, parsePartition } from './position.ts';
export type { Offset, Partition } from './position.ts';
export { encodeText, decodeText, anchorChecksum } from './record.ts';
export type { RecordHeader, RecordInput, LogRecord } from './record.ts';
export {
  SESSION_KEY_BYTES,
  MAX_SESSION_ID_LENGTH,
  makeSessionKey,
  signSessionId,
  parseSessionId,
  verifySessionId,
} from './session-id.ts';
export type { SessionId, SessionBinding } from './session-id.ts';
export {
  readSessionRecord,
  readHistoryMark,
  formatHistoryMark,
  SESSION_END_REASONS,
  readSessionEnd,
  readEpochRecord,
  readWorkerRecord,
  readCheckpointHint,
  readClaims,
  readCheckpoint,
  formatCheckpoint,
} from './session-record.ts';
export type {
  SessionRecord,
  SessionEndRecord,
  SessionEndReason,
  EpochRecord,
  HistoryMark,
  WorkerRecord,
  CheckpointHint,
  Checkpoint,
  LostRequests,
  OpenRequest,
} from './session-record.ts';
export {
  requestStream,
  standaloneStream,
  formatStreamLabel,
  parseStreamLabel,
  formatJsonRpcId,
  parseJsonRpcId,
} from './stream-label.ts';
export type { StreamKind, StreamLabel, JsonRpcId } from './stream-label.ts';
export {
  TOPICS,
  hasOnePartition,
  isTopicPrefix,
  COMPACTED_TOPICS,
  META_KEY,
  META_PREFIX,
  sessionEndKey,
} from './topic.ts';
export type { Topic } from './topic.ts';
export { crc32, fromBase64Url, hmacSha256, sha256, toBase64Url } from '#digest';

export { headerValue, textOfHeader } from './header-value.js';
export { rawMembers } from './json-members.js';
export { type CloudEventInput, type CloudEvents, readCloudEvents } from './read.js';

import type { CodecPlugin } from '@gateway/plugin';
import { readCloudEvents } from '@gateway/plugin/cloudevents';

const plugin: CodecPlugin = { open: () => ({ decode: readCloudEvents }) };

export default plugin;

import type { MetricsRig } from '@gateway/plugin-conformance';
import type { Settings } from './index.js';

/** What the conformance suite needs: settings. A back end that pushes also gives `read`, which tells what has arrived. */
const rig: MetricsRig<Settings> = { settings: () => ({ prefix: '' }) };

export default rig;

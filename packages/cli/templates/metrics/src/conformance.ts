import type { MetricsRig } from '@gateway/plugin-conformance';
import type { Settings } from './index.js';

/** The rig of the conformance suite. For a back end that pushes it also has `read`, which returns what has arrived. */
const rig: MetricsRig<Settings> = { settings: () => ({ prefix: '' }) };

export default rig;

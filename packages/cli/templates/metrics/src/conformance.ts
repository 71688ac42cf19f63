import type { MetricsRig } from '@gateway/plugin-conformance';
import type { Settings } from './index.js';

/**
 * The rig for the conformance suite. A backend that pushes also needs `read`, which returns the
 * values that the backend received.
 */
const rig: MetricsRig<Settings> = { settings: () => ({ prefix: '' }) };

export default rig;

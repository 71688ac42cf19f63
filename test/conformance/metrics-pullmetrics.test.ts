import { suite } from 'uvu';
import { metricsConformance, metricsRules } from '@gateway/plugin-conformance';
import plugin from '@gateway/metrics-pullmetrics';
import { judged } from './judged.js';

const conforms = suite('conformance/metrics-pullmetrics');

judged(
  conforms,
  metricsRules,
  () => metricsConformance(plugin, { settings: () => ({ sample_time: 5 }) }),
  ['pushes-everything'],
);

conforms.run();

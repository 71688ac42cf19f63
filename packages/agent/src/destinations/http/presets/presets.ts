import type { ServiceFormat } from '@gateway/store/config';
import type { InFlightDelivery } from '../../../model/delivery.js';
import type { TextConfig } from '../../../model/notification-text.js';
import { opsgenie, pagerduty } from './alerts.js';
import { messageOf, type Preset, type PresetRequest, type PresetTarget } from './message.js';
import { slack } from './slack.js';
import { teams } from './teams.js';

const PRESETS: Readonly<Record<ServiceFormat, Preset>> = { slack, teams, pagerduty, opsgenie };

/** The characters of a name, URL or error. PagerDuty takes 1,024, and Opsgenie 8,000 in all. */
const VALUE_MAX = 500;
/** An id, which is never cut, has 36. */
const VALUE_MIN = 40;

/**
 * The request about an event in the form of a service. If it exceeds the limits of the service, its
 * texts are cut; after each attempt shorter, because the service may count in another way.
 */
export function presetRequest(
  format: ServiceFormat,
  delivery: InFlightDelivery,
  target: PresetTarget,
  config: TextConfig,
): PresetRequest {
  const { usage, request } = PRESETS[format];
  for (let max = VALUE_MAX / 2 ** delivery.attempts; ; max /= 2) {
    const shown = Math.max(VALUE_MIN, Math.floor(max));
    const made = request(messageOf(delivery, shown, config), target);
    if (shown === VALUE_MIN || (usage?.(made.body) ?? 0) <= 1) return made;
  }
}

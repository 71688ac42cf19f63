import { formatDuration } from '../app/duration.js';
import type { ExplainedDelivery } from '@gateway/store/deliveries';
import { escapeLine } from '../output/escape-terminal.js';
import { endpointText } from './route-text.js';

/** A due delivery is claimed within a second or two; what is due for longer wants a reason. */
const CLAIMED_WITHIN_MS = 5_000;

/** What can be told of a delivery without asking again. */
export interface DeliveryContext {
  readonly projectId: string;
  /** Names of the agents that run. */
  readonly agents: readonly string[];
  readonly now: Date;
}

/** A delivery in three lines or so: its endpoint, what happened, what comes next. */
export function deliveryLines(delivery: ExplainedDelivery, context: DeliveryContext): string[] {
  const { endpoint_name: name, endpoint_url: url, endpoint_status: status } = delivery;
  return [
    endpointText({ name, url, status }),
    `  ${delivery.id}  ${delivery.status}${attemptsText(delivery)}`,
    ...nextLines(delivery, context).map((line) => `  ${line}`),
  ];
}

function attemptsText({ attempts, attempted_at, http_status, error_class, error, recovered }: ExplainedDelivery): string {
  if (attempts === 0 || attempted_at === null) return ', not attempted';
  const answer = http_status === null ? 'had no answer' : `was answered ${http_status}`;
  const why =
    error_class === null || error_class === 'status'
      ? ''
      : ` (${[error_class, error ? escapeLine(error, 200) : ''].filter(Boolean).join(': ')})`;
  const twice = recovered > 0 ? `; taken over from a dead agent ${recovered} times, so a request may have come twice` : '';
  return ` after ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}; the last, at ${attempted_at.toISOString()}, ${answer}${why}${twice}`;
}

function nextLines(delivery: ExplainedDelivery, context: DeliveryContext): string[] {
  const { status, reason, id } = delivery;
  switch (status) {
    case 'success':
      return [];
    case 'failure':
    case 'discarded':
      return [
        `${escapeLine(reason ?? 'no reason was noted')}`,
        `to send it again: PUT /api/v1/projects/${context.projectId}/eventdeliveries/${id}/resend`,
      ];
    case 'processing':
      return [
        delivery.agent_name === null
          ? `its agent ${delivery.claimed_by} is dead; another one takes it over within the time of a heartbeat${context.agents.length === 0 ? ', and none is running' : ''}`
          : `the agent ${escapeLine(delivery.agent_name)} holds it since ${delivery.updated_at.toISOString()}`,
      ];
    case 'scheduled':
    case 'retry':
      return [waitingLine(delivery, context), ...(reason === null ? [] : [escapeLine(reason)])];
  }
}

function waitingLine(
  { next_attempt_at: next, endpoint_id, endpoint_status, attempts }: ExplainedDelivery,
  { projectId, agents, now }: DeliveryContext,
): string {
  if (!(next instanceof Date)) {
    return endpoint_status === 'paused'
      ? `held while its endpoint is paused; POST /api/v1/projects/${projectId}/endpoints/${endpoint_id}/activate sends it`
      : 'held, though its endpoint is not paused: activate the endpoint once more';
  }
  const dueInMs = next.getTime() - now.getTime();
  const at = next.toISOString();
  if (dueInMs > 0) return `next attempt at ${at}, in ${formatDuration(dueInMs)}`;
  if (agents.length === 0) return `due since ${at}; no agent is running: start one with \`gateway agent\``;
  if (-dueInMs < CLAIMED_WITHIN_MS) return `due since ${at}; an agent takes it any moment`;
  const part = attempts === 0 ? 'first attempts' : 'retries';
  return `due since ${at} and not claimed: the agents are full of deliveries to slow endpoints, or none of them makes ${part} (agent.mode)`;
}

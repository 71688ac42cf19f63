import type { Endpoint, Source } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';
import { api, useAction, useResource } from '../../api/index.js';
import {
  Button,
  ButtonLink,
  Code,
  Copyable,
  Form,
  Link,
  Loaded,
  Page,
  Panel,
  Problem,
  Tabs,
  tabValue,
  TextField,
  useForm,
} from '../../components/index.js';
import { projectId } from '../../router/location.js';
import { may, newKey } from '../../session/session.js';
import { BrokerForm } from '../sources/broker-form.js';
import { HttpForm } from '../sources/http-form.js';
import { useSourceTypes } from '../sources/source-state.js';
import { firstMessage, keyLine, postLine, RECEIVER, receiverLine, SAMPLE } from './commands.js';
import { type Check, checksOf, readProgress } from './progress.js';

const LIVE_MS = 1_000;
const MARKS = { ok: '✓', waiting: '…', bad: '!' } as const;

export default function StartPage() {
  const progress = useResource('start', readProgress, LIVE_MS);
  return (
    <Page title="First message">
      <Loaded resource={progress} lines={12}>
        {(now) => {
          const checks = checksOf(now);
          const isDelivered = checks.every(({ state }) => state === 'ok');
          return (
            <div class="start">
              <ol class="steps">
                <EndpointStep known={now.endpoint} />
                <MessageStep isDone={Boolean(now.event)} />
              </ol>
              <div class="start-check">
                <Panel title="Progress">
                  <div role="status">
                    <ul class="checks">
                      {checks.map((check) => (
                        <CheckLine key={check.sentence} check={check} />
                      ))}
                    </ul>
                  </div>
                  {isDelivered && (
                    <ButtonLink kind="main" to="/overview">
                      Go to overview
                    </ButtonLink>
                  )}
                </Panel>
              </div>
            </div>
          );
        }}
      </Loaded>
    </Page>
  );
}

function CheckLine({ check: { state, sentence, to, action } }: { check: Check }) {
  return (
    <li class={state}>
      <span class="check-mark" aria-hidden="true">
        {MARKS[state]}
      </span>
      <span>
        {sentence} {to && <Link to={to}>{action}</Link>}
      </span>
    </li>
  );
}

function EndpointStep({ known }: { known: Endpoint | undefined }) {
  const [made, setMade] = useState<Endpoint>();
  // Kept in case subscribing it fails, so that a retry does not create a second endpoint.
  const unsubscribed = useRef<Endpoint | undefined>(undefined);
  const form = useForm({ url: '' }, async ({ url }) => {
    const endpoint = (unsubscribed.current ??= await api().endpoints.create({
      name: new URL(url).host,
      url: url.trim(),
    }));
    await api().subscriptions.create({
      name: 'Everything',
      endpoint_id: endpoint.uid,
      filter_config: { event_types: ['*'] },
    });
    setMade(endpoint);
  });
  const endpoint = made ?? known;
  const secret = made?.secrets[0]?.value;
  return (
    <Step number={1} title="Add an endpoint" isDone={Boolean(endpoint)}>
      {endpoint ? (
        <p>
          <Link to={`/endpoints/${endpoint.uid}`}>{endpoint.name}</Link> receives events at{' '}
          <code>{endpoint.url}</code>.
        </p>
      ) : may('member') ? (
        <Form action={form} verb="Add endpoint">
          <TextField
            label="URL"
            type="url"
            placeholder="https://example.com/webhooks"
            hint="The gateway posts every event to this URL. Subscriptions can narrow this later."
            {...form.text('url')}
            isMono
            isRequired
          />
        </Form>
      ) : (
        <p class="muted">This project has no endpoint. Adding one requires the member role.</p>
      )}
      {secret && (
        <>
          <p>Deliveries are signed. Copy the secret for the receiver now; it is shown only once.</p>
          <Code isRaw label="Endpoint secret" text={secret} />
        </>
      )}
      <Receiver secret={secret} />
    </Step>
  );
}

function Receiver({ secret }: { secret: string | undefined }) {
  return (
    <details class="step-details">
      <summary>No receiver yet?</summary>
      <p>
        Save this as <code>receiver.mjs</code> in the gateway's folder, on a machine that agents can
        reach. The receiver verifies each request:
      </p>
      <Code isRaw label="receiver.mjs" text={RECEIVER} />
      <p>The receiver listens on port 8080, at any path. Start it with the endpoint's secret:</p>
      <Code isRaw label="Command" text={receiverLine(secret)} />
      <p class="muted">
        Agents refuse private addresses and their own machine unless{' '}
        <code>delivery.allowed_networks</code> includes the network. To try{' '}
        <code>http://localhost:8080/</code>, start agents with{' '}
        <code>GATEWAY_DELIVERY_ALLOWED_NETWORKS=127.0.0.0/8</code>. Do not use this in production.
      </p>
    </details>
  );
}

const ORIGINS = [
  ['events', 'Over HTTP'],
  ['kafka', 'From Kafka'],
  ['sqs', 'From SQS'],
  ['webhook', "From a provider's webhook"],
] as const;

function MessageStep({ isDone }: { isDone: boolean }) {
  const from = tabValue('from', ORIGINS);
  return (
    <Step number={2} title="Send a message" isDone={isDone}>
      <Tabs name="from" label="Message origin" tabs={ORIGINS} />
      {from === 'events' ? <Posted /> : <FromSource key={from} type={from} />}
    </Step>
  );
}

function FromSource({ type }: { type: string }) {
  const [source, setSource] = useState<Source>();
  const types = useSourceTypes();
  if (!may('member')) return <p class="muted">Connecting a source requires the member role.</p>;
  if (source) {
    const isSigned = source.verifier !== null && source.verifier.type !== 'noop';
    return (
      <>
        <p>
          <Link to={`/sources/${source.uid}`}>{source.name}</Link> is connected.{' '}
          {source.url === null
            ? 'Write a message to it, for example:'
            : 'Enter its URL at the provider:'}
        </p>
        {source.url !== null && <Copyable text={source.url} what="URL" />}
        {isSigned ? (
          <p>Then let the provider send a test event: only the provider can sign it.</p>
        ) : (
          <Code isRaw label="First message" text={firstMessage(source)} />
        )}
      </>
    );
  }
  if (type === 'webhook') return <HttpForm onCreated={setSource} />;
  return (
    <Loaded resource={types} lines={6}>
      {(known) => {
        const plugin = known.find(({ name }) => name === type);
        return plugin ? (
          <BrokerForm type={plugin} onCreated={setSource} />
        ) : (
          <p>
            The plugin <code>{type}</code> is not active on this server.
          </p>
        );
      }}
    </Loaded>
  );
}

function Posted() {
  const sending = useAction(() => api().events.create(SAMPLE));
  const key = newKey.value?.projectId === projectId.value ? newKey.value?.key : undefined;
  return (
    <>
      {key ? (
        <>
          <p>
            Post a message to the API with the project's key. Copy the key now; it is shown only
            once.
          </p>
          <Code isRaw label="Key" text={keyLine(key)} />
        </>
      ) : (
        <ApiKey />
      )}
      <Code isRaw label="Post a message" text={postLine(location.origin, projectId.value ?? '')} />
      {sending.error && <Problem error={sending.error} />}
      <div class="form-actions">
        {may('member') && (
          <Button onPress={sending.run} isRunning={sending.isRunning}>
            Send from here
          </Button>
        )}
      </div>
    </>
  );
}

/** Where to get the key for the commands. Admins can create one. */
function ApiKey() {
  const making = useAction(async () => {
    const { key } = await api().apiKeys.create({ name: 'First message', role: 'member' });
    newKey.value = { projectId: projectId.value ?? '', key };
  });
  return (
    <>
      <p>
        Post a message to the API. The command reads the API key from <code>GATEWAY_KEY</code>: use
        the key from <code>gateway bootstrap</code>, or a key of this project.
      </p>
      {making.error && <Problem error={making.error} />}
      {may('admin') && (
        <div>
          <Button onPress={making.run} isRunning={making.isRunning}>
            Create key
          </Button>
        </div>
      )}
    </>
  );
}

function Step({
  number,
  title,
  isDone,
  children,
}: {
  number: number;
  title: string;
  isDone: boolean;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <li class={`panel step${isDone ? ' done' : ''}`} aria-labelledby={id}>
      <span class={`step-mark ${isDone ? 'ok' : 'accent'}`} aria-hidden="true">
        {isDone ? '✓' : number}
      </span>
      <div class="step-content">
        <h2 id={id}>
          {title}
          {isDone && <span class="spoken"> (done)</span>}
        </h2>
        {children}
      </div>
    </li>
  );
}

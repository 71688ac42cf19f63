import type { Endpoint } from '@gateway/client';
import { useRef, useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { Code } from '../../components/data/code.js';
import { fieldError, TextField } from '../../components/form/field.js';
import { Form } from '../../components/form/form.js';
import { projectHref } from '../../router/project-path.js';
import { may } from '../../session/access.js';
import { RECEIVER, receiverLine } from './commands.js';
import { Step } from './step.js';

export function EndpointStep({
  known,
  onMade,
}: {
  readonly known: Endpoint | undefined;
  readonly onMade: () => void;
}) {
  const [url, setUrl] = useState('');
  const [made, setMade] = useState<Endpoint>();
  // Kept, so that a retry creates no second endpoint.
  const unsubscribed = useRef<Endpoint | undefined>(undefined);
  const action = useAction(async () => {
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
    onMade();
  });
  const endpoint = made ?? known;
  const secret = made?.secrets[0]?.value;
  return (
    <Step number={1} title="An endpoint to deliver to" isDone={Boolean(endpoint)}>
      {endpoint ? (
        <p>
          <a href={projectHref(`/endpoints/${endpoint.uid}`)}>{endpoint.name}</a> gets its messages
          at <code>{endpoint.url}</code>.
        </p>
      ) : may('member') ? (
        <Form action={action} verb="Add the endpoint">
          <TextField
            label="URL"
            type="url"
            placeholder="https://example.com/webhooks"
            hint="Messages are posted there. The endpoint gets all of them; subscriptions choose later."
            value={url}
            onChange={setUrl}
            error={fieldError(action.error, 'url')}
            isMono
            isRequired
          />
        </Form>
      ) : (
        <p class="muted">This project has none. Adding one takes the role member.</p>
      )}
      {secret && (
        <>
          <p>
            Its deliveries are signed. Keep the secret for the receiver now: it is shown this once.
          </p>
          <Code isRaw label="Secret of the endpoint" text={secret} />
        </>
      )}
      <Receiver secret={secret} />
    </Step>
  );
}

function Receiver({ secret }: { readonly secret: string | undefined }) {
  return (
    <details class="step-details">
      <summary>No receiver at hand?</summary>
      <p>
        Save this as <code>receiver.mjs</code> in the folder of the gateway, on a machine that
        agents reach. It verifies what it gets:
      </p>
      <Code isRaw label="receiver.mjs" text={RECEIVER} />
      <p>It listens to port 8080, at any path. Start it with the secret of the endpoint:</p>
      <Code isRaw label="Command" text={receiverLine(secret)} />
      <p class="muted">
        Agents refuse private addresses and their own machine, unless{' '}
        <code>delivery.allowed_networks</code> names the network: for{' '}
        <code>http://localhost:8080/</code> start them with{' '}
        <code>GATEWAY_DELIVERY_ALLOWED_NETWORKS=127.0.0.0/8</code>, for a trial alone.
      </p>
    </details>
  );
}

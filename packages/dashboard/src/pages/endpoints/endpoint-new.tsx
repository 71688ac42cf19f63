import type { Endpoint } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, useAction } from '../../api/index.js';
import {
  ButtonLink,
  Form,
  Link,
  NewSecret,
  Page,
  Panel,
  Problem,
  TextField,
  type Value,
} from '../../components/index.js';
import { isPortal } from '../../router/location.js';
import { typesOf } from '../subscriptions/subscription-draft.js';
import { VerifySample } from './verify.js';
import { EndpointFields, fieldsOf } from './form/endpoint-fields.js';

interface Created {
  readonly endpoint: Endpoint;
  readonly problem?: Error;
}

export default function EndpointNew() {
  const [value, setValue] = useState<Value>({});
  const [typed, setTyped] = useState('*');
  const [created, setCreated] = useState<Created>();
  const create = useAction(async () => {
    const endpoint = await api().endpoints.create(fieldsOf(value));
    const types = typesOf(typed);
    setCreated({ endpoint, ...(types.length > 0 ? await subscribed(endpoint, types) : {}) });
  });
  if (created) return <CreatedPage {...created} />;
  return (
    <Page title="New endpoint" list="Endpoints">
      <Panel title="Endpoint details">
        <Form
          action={create}
          verb="Create endpoint"
          actions={<ButtonLink to="/endpoints">Cancel</ButtonLink>}
        >
          <EndpointFields value={value} onChange={setValue} error={create.error}>
            <TextField
              label="Event types"
              isMono
              hint={
                <>
                  Event types to receive. <code>*</code>: every type. <code>order.*</code>: every
                  type below order. Separate types with commas; leave empty for none.
                </>
              }
              value={typed}
              onChange={setTyped}
            />
          </EndpointFields>
        </Form>
      </Panel>
    </Page>
  );
}

/**
 * Returns an error instead of throwing it, because the endpoint exists and its secret must be
 * shown.
 */
async function subscribed({ uid, name }: Endpoint, event_types: readonly string[]) {
  try {
    await api().subscriptions.create({ name, endpoint_id: uid, filter_config: { event_types } });
    return {};
  } catch (error) {
    return { problem: error as Error };
  }
}

function CreatedPage({ endpoint: { uid, name, secrets }, problem }: Created) {
  return (
    <Page title={name} list="Endpoints">
      <Panel title="Endpoint created">
        <NewSecret what="secret" secret={secrets[0]?.value ?? ''}>
          <p>
            {isPortal.value ? (
              'Your server uses this secret to verify that a request comes from us.'
            ) : (
              <>
                The receiver verifies requests with this secret, by <code>verify()</code> of the
                client or any Standard Webhooks library.
              </>
            )}
          </p>
        </NewSecret>
        {isPortal.value && <VerifySample />}
        {problem && (
          <Problem error={problem}>
            <p>
              The endpoint has no subscription yet.{' '}
              <Link to={`/subscriptions/new?endpoint=${uid}`}>Add subscription</Link>
            </p>
          </Problem>
        )}
        <div class="form-actions">
          <ButtonLink kind="main" to={`/endpoints/${uid}?test=1`}>
            Send test event
          </ButtonLink>
          <ButtonLink to={`/endpoints/${uid}`}>Open endpoint</ButtonLink>
        </div>
      </Panel>
    </Page>
  );
}

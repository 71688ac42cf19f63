import type { CreatedPortalLink, PortalLink } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useAction, useDraft, type Draft } from '../../api/change.js';
import { api, given } from '../../api/client.js';
import { useList, type List } from '../../api/read.js';
import { NewSecret, Time, timeColumn, type TableColumn } from '../../components/data.js';
import { toast } from '../../components/feedback.js';
import { Checkbox, fieldError, TextField, textsOf } from '../../components/field.js';
import { Dialog, FormDialog } from '../../components/form.js';
import { Button, Page } from '../../components/layout.js';
import { FilterBar } from '../../components/log/filter-bar.js';
import { param, query, setQuery } from '../../router/location.js';
import { may } from '../../session/session.js';
import { ExpiryField, InUse, RevokeButton, StateBadge, type Expiry } from './in-use.js';
import { expiryOf, LINK_EXPIRIES, stateOf } from './key-ring.js';

/**
 * For a project or one owner. The query parameter `new`, set by the endpoint page's link, opens the
 * form.
 */
export default function PortalLinksPage() {
  const owner = param('search');
  const list = useList<PortalLink>(`portal links ${owner}`, (page, signal) =>
    api()
      .portalLinks.list({ ...given({ ownerId: owner }), ...page }, { signal })
      .page(),
  );
  const mayChange = may('member');
  const columns: readonly TableColumn<PortalLink>[] = [
    { name: 'Name', cell: ({ name }) => name },
    { name: 'Owner', cell: ({ owner_id: id }) => <code>{id}</code> },
    {
      name: 'Permissions',
      cell: ({ can_manage_endpoint: manages }) =>
        manages ? 'manage endpoints' : 'read and resend',
    },
    { name: 'State', cell: (row) => <StateBadge row={row} /> },
    timeColumn('Last used', 'last_used_at', 'relative', 'never'),
    timeColumn('Expires', 'expires_at'),
    ...(mayChange
      ? [{ name: 'Actions', cell: (row: PortalLink) => <Actions row={row} list={list} /> }]
      : []),
  ];
  return (
    <Page
      title="Portal links"
      actions={
        mayChange && (
          <Button kind="main" keys="n" onPress={() => setQuery({ new: '1' })}>
            New portal link
          </Button>
        )
      }
    >
      <p class="muted">
        Each link opens the portal of one owner for anyone who has its URL. Expired and revoked
        links are deleted after a week.
      </p>
      <FilterBar searchHint="Owner ID" hasTime={false} />
      <InUse
        list={list}
        label="Portal links"
        none={owner ? `No active portal links of ${owner}` : 'No active portal links'}
        columns={columns}
      >
        <p>
          A portal link shows a customer the endpoints with their owner id, and the deliveries to
          them, without an account.{' '}
          {mayChange
            ? 'Create one here, or from your backend when a customer opens your webhooks page.'
            : 'Ask a member of the project to create one.'}
        </p>
      </InUse>
      {mayChange && query.value.has('new') && (
        <NewLink
          owner={owner}
          onSaved={list.refresh}
          onClose={() => setQuery({ new: undefined }, { replace: true })}
        />
      )}
    </Page>
  );
}

function Actions({ row, list }: { row: PortalLink; list: List<PortalLink> }) {
  const [open, setOpen] = useState<'edit' | 'url'>();
  const dialog = { link: row, onSaved: list.refresh, onClose: () => setOpen(undefined) };
  if (stateOf(row) === 'revoked') return null;
  return (
    <span class="row-actions">
      <Button label={`Edit ${row.name}`} onPress={() => setOpen('edit')}>
        Edit…
      </Button>
      <Button label={`New URL for ${row.name}`} onPress={() => setOpen('url')}>
        New URL…
      </Button>
      <RevokeButton row={row} of={{ list, revoke: (id) => api().portalLinks.revoke(id) }}>
        The URL stops showing data of <code>{row.owner_id}</code> immediately, even where it is
        open; on other servers within a second.
      </RevokeButton>
      {open === 'edit' && <EditLink {...dialog} />}
      {open === 'url' && <NewUrl {...dialog} />}
    </span>
  );
}

interface LinkDialog {
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** By default for the given owner. */
function NewLink({ owner, ...dialog }: LinkDialog & { owner: string }) {
  const draft = useDraft({ name: owner, owner_id: owner, can_manage_endpoint: false });
  const make = (expires_at: string) =>
    api().portalLinks.create({
      ...draft.values,
      name: draft.values.name.trim(),
      owner_id: draft.values.owner_id.trim(),
      expires_at,
    });
  return (
    <UrlDialog {...dialog} title="New portal link" verb="Create link" make={make}>
      {(error) => (
        <>
          <TextField
            label="Owner ID"
            hint="The link shows only endpoints with this owner id."
            {...textsOf(draft, error)('owner_id')}
            isRequired
            hasFocus
          />
          <LinkFields draft={draft} error={error} />
        </>
      )}
    </UrlDialog>
  );
}

/** Replaces the URL of a portal link. */
function NewUrl({ link, ...dialog }: LinkDialog & { link: PortalLink }) {
  const make = (expires_at: string) => api().portalLinks.refreshToken(link.uid, { expires_at });
  return (
    <UrlDialog {...dialog} title={`New URL for ${link.name}`} verb="Create URL" make={make}>
      {() => <p>The current URL stops working immediately, even where it is open.</p>}
    </UrlDialog>
  );
}

function EditLink({ link, onSaved, onClose }: LinkDialog & { link: PortalLink }) {
  const draft = useDraft({ name: link.name, can_manage_endpoint: link.can_manage_endpoint });
  const saving = useAction(async () => {
    const { name } = await api().portalLinks.update(link.uid, {
      ...draft.values,
      name: draft.values.name.trim(),
    });
    toast(`${name} was changed.`);
    onSaved();
    onClose();
  });
  return (
    <FormDialog title={`Edit ${link.name}`} verb="Save" action={saving} onClose={onClose}>
      <p>
        This link opens the portal of <code>{link.owner_id}</code>. Its URL stays the same, and
        changed permissions apply immediately.
      </p>
      <LinkFields draft={draft} error={saving.error} />
    </FormDialog>
  );
}

function LinkFields({
  draft,
  error,
}: {
  draft: Pick<Draft<Pick<PortalLink, 'name' | 'can_manage_endpoint'>>, 'values' | 'set'>;
  error: Error | undefined;
}) {
  return (
    <>
      <TextField
        label="Name"
        hint="Shown in this list and in the audit log."
        {...textsOf(draft, error)('name')}
        isRequired
      />
      <Checkbox
        label="Manage endpoints"
        hint="Allows creating, changing, pausing and deleting endpoints, and subscribing them to events without an owner."
        isOn={draft.values.can_manage_endpoint}
        onChange={draft.set('can_manage_endpoint')}
      />
    </>
  );
}

function UrlDialog({
  title,
  verb,
  make,
  onSaved,
  onClose,
  children,
}: LinkDialog & {
  title: string;
  verb: string;
  make: (expiresAt: string) => Promise<CreatedPortalLink>;
  children: (error: Error | undefined) => ComponentChildren;
}) {
  const [expiry, setExpiry] = useState<Expiry>({ choice: LINK_EXPIRIES[0][0], time: '' });
  const [made, setMade] = useState<CreatedPortalLink>();
  const making = useAction(async () => {
    setMade(await make(expiryOf(expiry.choice, expiry.time) ?? ''));
    onSaved();
  });
  if (made) {
    return (
      <Dialog title={title} onClose={onClose} actions={<Button onPress={onClose}>Done</Button>}>
        <NewSecret what={made.url === null ? 'token' : 'URL'} secret={made.url ?? made.token}>
          <p>
            This link opens the portal of <code>{made.owner_id}</code> for anyone who has it. The
            link expires <Time at={made.expires_at} look="relative" />.
          </p>
        </NewSecret>
      </Dialog>
    );
  }
  return (
    <FormDialog title={title} verb={verb} action={making} onClose={onClose}>
      {children(making.error)}
      <ExpiryField
        options={LINK_EXPIRIES}
        value={expiry}
        onChange={setExpiry}
        error={fieldError(making.error, 'expires_at')}
      />
    </FormDialog>
  );
}

import type { PortalLink } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { given } from '../../api/given.js';
import { useList, type List } from '../../api/use-list.js';
import { Time } from '../../components/data/time.js';
import { Button } from '../../components/layout/button.js';
import { Page } from '../../components/layout/page.js';
import { param, query, setQuery } from '../../router/location.js';
import { projectId } from '../../router/project-path.js';
import { may } from '../../session/access.js';
import { FilterBar } from '../log/filter-bar.js';
import { InUse, RevokeButton, StateBadge } from './in-use.js';
import { stateOf } from './key-state.js';
import { EditLink, NewLink, NewUrl } from './link-dialog.js';

/**
 * The portal links of a project, or of one owner. The query `new`, set by links from endpoints,
 * opens the form.
 */
export default function PortalLinksPage() {
  const owner = param('search');
  const list = useList<PortalLink>(`${projectId.value} portal links ${owner}`, (page, signal) =>
    api()
      .portalLinks.list({ ...given({ ownerId: owner }), ...page }, { signal })
      .page(),
  );
  const mayChange = may('member');
  const columns = [
    { name: 'Name', cell: ({ name }: PortalLink) => name },
    { name: 'Owner', cell: ({ owner_id: id }: PortalLink) => <code>{id}</code> },
    {
      name: 'May',
      cell: ({ can_manage_endpoint: manages }: PortalLink) =>
        manages ? 'manage endpoints' : 'read and send again',
    },
    { name: 'State', cell: (row: PortalLink) => <StateBadge row={row} /> },
    {
      name: 'Last used',
      cell: ({ last_used_at: at }: PortalLink) => (at ? <Time at={at} look="relative" /> : 'never'),
    },
    { name: 'Expires', cell: ({ expires_at: at }: PortalLink) => <Time at={at} look="relative" /> },
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
        Each opens the portal of one owner, for those who have its URL. Links that ended are deleted
        a week later.
      </p>
      <FilterBar searchHint="Owner id" hasTime={false} />
      <InUse<PortalLink>
        list={list}
        label="Portal links"
        none={owner ? `No portal link of ${owner} is in use` : 'No portal link is in use'}
        columns={columns}
      >
        <p>
          A portal link shows a customer the endpoints that have their owner id, and the deliveries
          to these, without an account.{' '}
          {mayChange
            ? 'Create one here, or from your backend when they open your webhooks page.'
            : 'Ask a member of the project for one.'}
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

function Actions({ row, list }: { readonly row: PortalLink; readonly list: List<PortalLink> }) {
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
        Its URL shows nothing more of <code>{row.owner_id}</code>, also where it is open: at once,
        on other servers within a second.
      </RevokeButton>
      {open === 'edit' && <EditLink {...dialog} />}
      {open === 'url' && <NewUrl {...dialog} />}
    </span>
  );
}

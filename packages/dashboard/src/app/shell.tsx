import { useEffect, useState } from 'preact/hooks';
import { Toasts } from '../components/feedback/toast.js';
import { Button } from '../components/layout/button.js';
import { href, path } from '../router/location.js';
import { Account } from './account.js';
import { Help } from './help.js';
import { Home } from './home.js';
import { Navigation } from './navigation.js';
import { Outlet } from './outlet.js';
import { ProjectSwitch } from './project-switch.js';
import { routes } from './routes.js';

export function Shell() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path.value]);
  return (
    <div class={`shell${isOpen ? ' open' : ''}`}>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="sidebar">
        <div class="sidebar-head">
          <a class="brand" href={href('/')}>
            Gateway
          </a>
          <div class="menu-button">
            <Button
              label={isOpen ? 'Close the menu' : 'Open the menu'}
              onPress={() => setOpen(!isOpen)}
            >
              {isOpen ? '✕' : '☰'}
            </Button>
          </div>
        </div>
        <div class="sidebar-content">
          <ProjectSwitch />
          <Navigation routes={routes} />
          <Account />
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {path.value === '/' ? <Home /> : <Outlet routes={routes} />}
      </main>
      <Help />
      <Toasts />
    </div>
  );
}

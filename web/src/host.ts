// Where the page lives: in a window of its own (msprobe serve, an exported file), or in a frame of TensorBoard.
import type { Theme } from './model/store';

export interface Host {
  readonly token: string;
  readonly theme: Theme; // until the user chooses one
  /** What one sends to a colleague. */
  readonly address: string;
  /** The address of a table of acc_check as a page of its own; null where the server has none. */
  readonly checkPage: ((file: string) => string) | null;
  /** The address of a report; null where the server gives out none. */
  readonly reportPage: ((file: string) => string) | null;
  /** What a deep link names: the part behind '#'. */
  readLink(): string;
  /** `entry`: going back leads to what was shown before. */
  writeLink(hash: string, entry: boolean): void;
  /** The address was changed by the user. */
  onLink(listener: () => void): void;
  onTheme(listener: (theme: Theme) => void): void;
}

const meta = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content;
const own = matchMedia('(prefers-color-scheme: dark)');

export function findHost(): Host {
  return meta('msprobe-host') === 'tensorboard' && window.parent !== window ? new TensorBoardHost(window.parent) : new WindowHost();
}

class WindowHost implements Host {
  // A server that lets everybody in who reaches it gives the token with the page.
  readonly token = meta('msprobe-token') ?? new URLSearchParams(location.search).get('token') ?? '';
  readonly theme: Theme = own.matches ? 'dark' : 'light';
  readonly checkPage = (file: string): string => `check?${new URLSearchParams({ token: this.token, file })}`;
  readonly reportPage = (file: string): string => `report?${new URLSearchParams({ token: this.token, file })}`;
  get address(): string {
    return location.href;
  }

  readLink(): string {
    return location.hash;
  }
  writeLink(hash: string, entry: boolean): void {
    // A frame of a notebook has no address of its own.
    if (hash === location.hash || !/^(https?|file):$/.test(location.protocol)) return;
    const address = location.pathname + location.search + hash;
    if (entry) history.pushState(null, '', address);
    else history.replaceState(null, '', address);
  }
  onLink(listener: () => void): void {
    window.addEventListener('popstate', listener);
  }
  onTheme(): void {}
}

/**
 * TensorBoard keeps a tab's state in its own address, as p.PLUGIN.KEY, and leaves what it does not know there. So the
 * address that the user sees and copies names the node. Its history is its own: going back leads out of the tab.
 */
class TensorBoardHost implements Host {
  readonly token = meta('msprobe-token') ?? '';
  readonly checkPage = null;
  readonly reportPage = null;
  private readonly tab = location.pathname.split('/').at(-2) ?? '';
  private readonly key = `p.${this.tab}.at=`;
  private written = '';

  constructor(private readonly outer: Window) {}

  private get dark(): boolean {
    return this.outer.document.body.classList.contains('dark-mode');
  }
  get address(): string {
    return this.outer.location.href;
  }
  get theme(): Theme {
    return this.dark ? 'dark' : 'light';
  }

  private parts(): string[] {
    return this.outer.location.hash.replace(/^#/, '').split('&').filter(Boolean);
  }

  readLink(): string {
    const part = this.parts().find((text) => text.startsWith(this.key));
    try {
      this.written = part ? decodeURIComponent(part.slice(this.key.length)) : '';
    } catch {
      this.written = ''; // not a link of ours
    }
    return this.written;
  }
  writeLink(hash: string): void {
    const link = hash.replace(/^#/, '');
    this.written = link;
    const { pathname, search } = this.outer.location;
    const others = this.parts().filter((text) => !text.startsWith(this.key));
    const parts = others[0]?.includes('=') === false ? others : [this.tab, ...others];
    if (link) parts.push(this.key + encodeURIComponent(link));
    this.outer.history.replaceState(this.outer.history.state, '', `${pathname}${search}#${parts.join('&')}`);
  }
  onLink(listener: () => void): void {
    this.outer.addEventListener('hashchange', () => {
      const before = this.written;
      if (this.parts()[0] === this.tab && this.readLink() !== before) listener();
    });
  }
  onTheme(listener: (theme: Theme) => void): void {
    let before = this.dark;
    new MutationObserver(() => {
      if (this.dark === before) return;
      before = this.dark;
      listener(this.theme);
    }).observe(this.outer.document.body, { attributes: true, attributeFilter: ['class'] });
  }
}

import { useApp, useSession, useText } from './context';
import { Icon } from './icons';
import { walkHits } from './search_dock';

/** A combo box whose list is docked beside the graphs: the field stays focused, the list is walked with the arrow keys. */
export function SearchBox() {
  const session = useSession();
  const t = useText();
  const search = useApp((state) => state.search);
  const { open } = search;
  const active = open && search.result.at === 'ready' && search.active >= 0 ? `hit-${search.active}` : undefined;
  return (
    <div class="search">
      <Icon name="search" />
      <input
        id="search"
        type="search"
        role="combobox"
        aria-label={t('search.label')}
        aria-expanded={open}
        aria-controls="search-hits"
        aria-activedescendant={active}
        list={undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={t('search.placeholder')}
        value={search.query}
        onFocus={(event) => {
          event.currentTarget.select();
          session.finder.open();
        }}
        onInput={(event) => session.finder.search({ query: event.currentTarget.value })}
        onKeyDown={(event) => walkHits(event, session)}
      />
      <kbd>/</kbd>
    </div>
  );
}

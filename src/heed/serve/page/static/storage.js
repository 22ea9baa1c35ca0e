// What a browser keeps under names, for this tab or for longer. A browser may refuse, because that
// is blocked or full: then this page keeps it until it is closed.

/** @param {() => Storage} open what keeps it; throws if that is blocked */
function makeStorage(open) {
  const own = new Map();
  return {
    /** What is kept under this name, or null. */
    get(name) {
      if (own.has(name)) return own.get(name);
      try {
        return open().getItem(name);
      } catch {
        return null;
      }
    },
    /** @param {string|null} value null removes what is kept */
    set(name, value) {
      own.delete(name);
      try {
        if (value === null) open().removeItem(name);
        else open().setItem(name, value);
      } catch {
        own.set(name, value);
      }
    },
    /** What is kept as JSON; an empty object if there is nothing that can be read. */
    object(name) {
      try {
        return JSON.parse(this.get(name)) ?? {};
      } catch {
        return {};
      }
    },
  };
}

export const ofTab = makeStorage(() => sessionStorage);
export const ofBrowser = makeStorage(() => localStorage);

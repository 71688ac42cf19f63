#!/usr/bin/env node
import '../packages/cli/bin/gateway.js';

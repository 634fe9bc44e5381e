/** Kafka's command line tools under the names that operators know. Maven Central has their classes, not their scripts. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const CLASSES: Readonly<Record<string, readonly string[]>> = {
  // Moved from one package to the other in 4.x.
  'kafka-acls.sh': ['org.apache.kafka.tools.AclCommand', 'kafka.admin.AclCommand'],
  'kafka-configs.sh': ['org.apache.kafka.tools.ConfigCommand', 'kafka.admin.ConfigCommand'],
  'kafka-topics.sh': ['org.apache.kafka.tools.TopicCommand'],
  'kafka-get-offsets.sh': ['org.apache.kafka.tools.GetOffsetShell'],
  'kafka-console-consumer.sh': ['org.apache.kafka.tools.consumer.ConsoleConsumer', 'kafka.tools.ConsoleConsumer'],
  'kafka-console-producer.sh': ['org.apache.kafka.tools.ConsoleProducer', 'kafka.tools.ConsoleProducer'],
  'kafka-delete-records.sh': ['org.apache.kafka.tools.DeleteRecordsCommand', 'kafka.admin.DeleteRecordsCommand'],
  'kafka-dump-log.sh': ['org.apache.kafka.tools.DumpLogSegments', 'kafka.tools.DumpLogSegments'],
  'kafka-consumer-groups.sh': [
    'org.apache.kafka.tools.consumer.group.ConsumerGroupCommand',
    'kafka.admin.ConsumerGroupCommand',
  ],
};

/** Writes a script for each tool into `folder`, which is made if needed: put it first in `PATH`. Needs Java 17. */
export function writeKafkaScripts(jars: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const hasClass = makeClassCheck(jars);
  const classPath = [path.join(jars, 'slf4j-simple-1.7.36.jar'), path.join(jars, '*')].join(path.delimiter);
  for (const [script, candidates] of Object.entries(CLASSES)) {
    const main = candidates.find(hasClass);
    if (main === undefined) throw new Error(`these jars have no ${script}: ${jars}`);
    const file = path.join(folder, script);
    const options = '-Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error';
    writeFileSync(file, `#!/bin/sh\nexec java ${options} -cp '${classPath}' ${main} "$@"\n`);
    chmodSync(file, 0o755);
  }
}

/** Whether one of the jars that hold tools has the class: a jar names its files uncompressed. */
function makeClassCheck(jars: string): (name: string) => boolean {
  const files = readdirSync(jars).filter((name) => /^(kafka_2\.13|kafka-tools)-.*\.jar$/.test(name));
  const contents = files.map((name) => readFileSync(path.join(jars, name)));
  return (name) => contents.some((content) => content.includes(`${name.replaceAll('.', '/')}.class`));
}

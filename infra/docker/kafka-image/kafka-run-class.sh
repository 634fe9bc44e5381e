#!/bin/bash
# kafka-run-class.sh CLASS [ARG...]: CLASS with Kafka's libraries, and the KAFKA_* JVM variables of the official scripts.
level=${KAFKA_LOG_LEVEL:-warn}
# slf4j-simple first: another binding may lie beside it.
# shellcheck disable=SC2086  # the variables hold several options
exec java ${KAFKA_HEAP_OPTS:--Xmx256M} ${KAFKA_JVM_PERFORMANCE_OPTS:--XX:+UseSerialGC -XX:TieredStopAtLevel=1} \
  ${KAFKA_GC_LOG_OPTS:-} ${KAFKA_JMX_OPTS:-} ${KAFKA_LOG4J_OPTS:-} \
  -Dorg.slf4j.simpleLogger.defaultLogLevel="$level" -Dorg.slf4j.simpleLogger.showDateTime=true \
  -Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd\'T\'HH:mm:ss.SSS \
  -cp "/opt/kafka/libs/slf4j-simple-1.7.36.jar:/opt/kafka/libs/*" ${KAFKA_OPTS:-} "$@"

# Writes the properties that the variables KAFKA_… name like the image of Kafka, and becomes the broker.
set -e
env | sed -n 's/^KAFKA_//p' | while IFS='=' read -r name value; do
  echo "$(echo "$name" | tr 'A-Z_' 'a-z.')=$value"
done > /server.properties
[ -e "$KAFKA_LOG_DIRS/meta.properties" ] || java -cp "/kafka/*" kafka.tools.StorageTool format --cluster-id=4L6g3nShT-eMCtK--X86sw --config=/server.properties
exec java -Xmx512m -cp '/kafka/*' kafka.Kafka /server.properties

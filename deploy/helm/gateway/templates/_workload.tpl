{{/*
A Deployment with its Service, PodDisruptionBudget and autoscaler.
Input: root, name (gateway-server or gateway-agent), component, values, args, port, scheme.
*/}}
{{- define "gateway.workload" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $full := printf "%s-%s" (include "gateway.fullname" $root) .component -}}
{{- $keda := dig "keda" "enabled" false $values -}}
{{- if and $keda $values.autoscaling.enabled -}}
{{- fail (printf "%s: keda.enabled and autoscaling.enabled exclude each other, because both set the number of replicas: disable one" .component) -}}
{{- end -}}
{{- if and $keda (empty $values.keda.triggers) -}}
{{- fail (printf "%s: keda.triggers is empty: name at least one, such as the lag of a Kafka topic" .component) -}}
{{- end -}}
{{- $token := "GATEWAY_METRICS_BEARER_TOKEN" -}}
{{- $isOpen := ne (include "gateway.mayHave" (dict "root" $root "variable" $token)) "true" -}}
{{- if and $root.Values.metrics.enabled (ne $values.service.type "ClusterIP") $isOpen -}}
{{- fail (printf "%s: a service of type %s publishes /metrics without a token: name one in secretEnv.%s" .component $values.service.type $token) -}}
{{- end -}}
{{- $drain := dig "agent" "drain_timeout_seconds" 25 $root.Values.config | int -}}
{{- $delay := dig "server" "http" "drain_delay_seconds" 0 $root.Values.config | int -}}
{{- $labels := merge (include "gateway.selector" . | fromYaml) (include "gateway.labels" $root | fromYaml) -}}
{{- $object := include "gateway.metadata" (dict "root" $root "labels" (include "gateway.labels" $root | fromYaml)) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $full }}
  {{- include "gateway.metadata" (dict "root" $root "labels" $labels) | nindent 2 }}
spec:
  {{- if not (or $keda $values.autoscaling.enabled) }}
  replicas: {{ $values.replicas }}
  {{- end }}
  {{- if $values.paused }}
  paused: true
  {{- end }}
  revisionHistoryLimit: 5
  # One pod at a time: each agent that joins or leaves makes Kafka rebalance.
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }
  selector:
    matchLabels:
      {{- include "gateway.selector" . | nindent 6 }}
  template:
    {{- $spec := include "gateway.workloadSpec" (merge (dict "grace" (add $delay $drain 10)) .) }}
    {{- $container := include "gateway.workloadContainer" . }}
    # Settings are read at the start, so a change restarts the pods.
    {{- $annotations := dict "checksum/config" (include "gateway.config" $root | sha256sum) }}
    {{- $pod := dict "args" (concat .args $values.args) "config" (include "gateway.fullname" $root) "annotations" $annotations
      "spec" $spec "container" $container "extraContainers" (concat $root.Values.extraContainers $values.extraContainers) }}
    {{- include "gateway.podTemplate" (merge $pod .) | nindent 4 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $full }}
  {{- include "gateway.metadata" (dict "root" $root "labels" $labels "annotations" $values.service.annotations) | nindent 2 }}
spec:
  type: {{ $values.service.type }}
  selector:
    {{- include "gateway.selector" . | nindent 4 }}
  ports:
    - name: http
      port: {{ .port }}
      targetPort: http
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $full }}
  {{- $object | nindent 2 }}
spec:
  {{- toYaml $values.podDisruptionBudget | nindent 2 }}
  # A pod that is not ready must not block the drain of its node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "gateway.selector" . | nindent 6 }}
{{- if $values.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $full }}
  {{- $object | nindent 2 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: {{ $full }} }
  minReplicas: {{ $values.autoscaling.minReplicas }}
  maxReplicas: {{ $values.autoscaling.maxReplicas }}
  metrics:
    {{- with $values.autoscaling.targetCPUUtilizationPercentage }}
    - type: Resource
      resource:
        name: cpu
        target: { type: Utilization, averageUtilization: {{ . }} }
    {{- end }}
    {{- with $values.autoscaling.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  behavior:
    scaleDown:
      policies: [{ type: Pods, value: 1, periodSeconds: 60 }]
{{- end }}
{{- if $keda }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ $full }}
  {{- $object | nindent 2 }}
spec:
  scaleTargetRef: { name: {{ $full }} }
  minReplicaCount: {{ $values.keda.minReplicas }}
  maxReplicaCount: {{ $values.keda.maxReplicas }}
  pollingInterval: {{ $values.keda.pollingInterval }}
  cooldownPeriod: {{ $values.keda.cooldownPeriod }}
  triggers:
    {{- toYaml $values.keda.triggers | nindent 4 }}
{{- end }}
{{- end }}

{{/* Input: grace (seconds), and that of `gateway.workload`. */}}
{{- define "gateway.workloadSpec" -}}
serviceAccountName: {{ include "gateway.serviceAccountName" .root }}
# The preStop hook, the delay, the drain, and 5 s more.
terminationGracePeriodSeconds: {{ .grace }}
{{- if .values.topologySpread }}
topologySpreadConstraints:
  {{- range .values.topologySpread }}
  - {{ toYaml . | indent 4 | trim }}
    labelSelector:
      matchLabels:
        {{- include "gateway.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end }}

{{- define "gateway.workloadContainer" -}}
ports:
  - name: http
    containerPort: {{ .port }}
startupProbe:
  httpGet: { path: /healthz, port: http, scheme: {{ .scheme }} }
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: http, scheme: {{ .scheme }} }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: '/healthz?ready', port: http, scheme: {{ .scheme }} }
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
lifecycle:
  # Load balancers stop sending before the process stops listening.
  preStop:
    sleep: { seconds: 5 }
{{- end }}

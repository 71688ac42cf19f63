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
{{- $drain := dig "agent" "drain_timeout_seconds" 25 $root.Values.config | int -}}
{{- $delay := dig "server" "http" "drain_delay_seconds" 0 $root.Values.config | int -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $full }}
  labels:
    {{- include "gateway.selector" . | nindent 4 }}
    {{- omit (include "gateway.labels" $root | fromYaml) "app.kubernetes.io/instance" | toYaml | nindent 4 }}
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
    metadata:
      labels:
        {{- include "gateway.selector" . | nindent 8 }}
        app.kubernetes.io/part-of: gateway
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        # Settings are read at the start, so a change restarts the pods.
        checksum/config: {{ include "gateway.config" $root | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- include "gateway.pod" $root | nindent 6 }}
      serviceAccountName: {{ include "gateway.serviceAccountName" $root }}
      # The preStop hook, the delay, the drain, and 5 s more.
      terminationGracePeriodSeconds: {{ add $delay $drain 10 }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $values.topologySpread }}
      topologySpreadConstraints:
        {{- range $values.topologySpread }}
        - {{ toYaml . | indent 10 | trim }}
          labelSelector:
            matchLabels:
              {{- include "gateway.selector" $ | nindent 14 }}
          matchLabelKeys: [pod-template-hash]
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .name }}
          args: {{ concat .args $values.args | toJson }}
          {{- include "gateway.container" $root | nindent 10 }}
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
          resources:
            {{- toYaml $values.resources | nindent 12 }}
      volumes:
        {{- include "gateway.volumes" (dict "root" $root "config" (include "gateway.fullname" $root)) | nindent 8 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $full }}
  labels:
    {{- include "gateway.selector" . | nindent 4 }}
    {{- omit (include "gateway.labels" $root | fromYaml) "app.kubernetes.io/instance" | toYaml | nindent 4 }}
  {{- with $values.service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
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
  labels:
    {{- include "gateway.labels" $root | nindent 4 }}
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
  labels:
    {{- include "gateway.labels" $root | nindent 4 }}
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
  labels:
    {{- include "gateway.labels" $root | nindent 4 }}
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

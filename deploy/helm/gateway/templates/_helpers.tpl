{{- define "gateway.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $full .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Labels that select the pods of one Deployment. Input: root, name (gateway-server), component (server, or the group of agents). */}}
{{- define "gateway.selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of every object. A pod template has none that change with the version of the chart, which would restart it. */}}
{{- define "gateway.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: gateway
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gateway.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ $tag }}{{ end }}
{{- end }}

{{/* gateway.json: `config`, and what `metrics.enabled` adds. */}}
{{- define "gateway.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.metrics.enabled -}}
{{- $flags := append (default list $config.enable_feature_flag) "pullmetrics" | uniq -}}
{{- $metrics := dict "enabled" true "metrics_backend" "pullmetrics" -}}
{{- $config = mergeOverwrite $config (dict "enable_feature_flag" $flags "metrics" $metrics) -}}
{{- end -}}
{{- toPrettyJson $config -}}
{{- end }}

{{- define "gateway.serviceAccountName" -}}
{{- default (.Values.serviceAccount.create | ternary (include "gateway.fullname" .) "default") .Values.serviceAccount.name -}}
{{- end }}

{{/* The spec that all pods share: who they run as. */}}
{{- define "gateway.pod" -}}
automountServiceAccountToken: false
# Variables that Kubernetes makes for services have the names of settings.
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* The container that all pods share. Only /tmp is writable. The sandbox of functions needs no capability. */}}
{{- define "gateway.container" -}}
image: {{ include "gateway.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  {{- range $name, $value := .Values.env }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- range $name, $from := .Values.secretEnv }}
  - name: {{ $name }}
    valueFrom:
      secretKeyRef:
        name: {{ $from.name }}
        key: {{ $from.key }}
  {{- end }}
volumeMounts:
  - name: config
    mountPath: /etc/gateway/gateway.json
    subPath: gateway.json
    readOnly: true
  - name: tmp
    mountPath: /tmp
  {{- with .Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Input: root, config (name of the ConfigMap). */}}
{{- define "gateway.volumes" -}}
- name: config
  configMap:
    name: {{ .config }}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- with .root.Values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

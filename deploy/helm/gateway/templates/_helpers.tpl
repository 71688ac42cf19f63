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

{{/* Whether the values may set a variable, also by a file or with all of a Secret. Input: root, variable. */}}
{{- define "gateway.mayHave" -}}
{{- $names := merge (dict) .root.Values.secretEnv .root.Values.env -}}
{{- or (hasKey $names .variable) (hasKey $names (printf "%s_FILE" .variable)) (not (empty .root.Values.envFrom)) -}}
{{- end }}

{{- define "gateway.rootPath" -}}
{{- dig "root_path" "" .Values.config -}}
{{- end }}

{{/* Labels and annotations of an object. Those of the chart win over common ones. Input: root, labels, annotations. */}}
{{- define "gateway.metadata" -}}
labels:
  {{- merge (dict) .labels .root.Values.commonLabels | toYaml | nindent 2 }}
{{- with merge (dict) (default dict .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Annotations of an object that exists before the release. A failed Job stays, with its log. Input: its weight. */}}
{{- define "gateway.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- define "gateway.serviceAccountName" -}}
{{- default (.Values.serviceAccount.create | ternary (include "gateway.fullname" .) "default") .Values.serviceAccount.name -}}
{{- end }}

{{/*
The pod template of a Deployment or of the Job. Only /tmp is writable. The sandbox of functions needs no capability.
Input: root, name, component, values (extend those of all pods), config (name of the ConfigMap), labels, annotations,
args, container (fields of the container), extraContainers, spec (fields of the pod).
*/}}
{{- define "gateway.podTemplate" -}}
{{- $all := .root.Values -}}
{{- $values := .values -}}
{{- $labels := merge (include "gateway.selector" . | fromYaml) (dict "app.kubernetes.io/part-of" "gateway") $values.podLabels -}}
{{- $env := merge (dict) (deepCopy $values.env) $all.env -}}
{{- range $name, $from := $all.secretEnv -}}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" $from)) -}}
{{- end -}}
metadata:
  {{- include "gateway.metadata" (dict "root" .root "labels" $labels "annotations" (merge (dict) .annotations $values.podAnnotations)) | nindent 2 }}
spec:
  automountServiceAccountToken: false
  # Variables that Kubernetes makes for services have the names of settings.
  enableServiceLinks: false
  {{- with $all.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml $all.podSecurityContext | nindent 4 }}
  {{- range $field := list "priorityClassName" "nodeSelector" "tolerations" "affinity" }}
  {{- with get $values $field }}
  {{ $field }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- .spec | nindent 2 }}
  {{- with concat $all.initContainers $values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .name }}
      image: {{ include "gateway.image" .root | quote }}
      imagePullPolicy: {{ $all.image.pullPolicy }}
      args: {{ toJson .args }}
      securityContext:
        {{- toYaml $all.containerSecurityContext | nindent 8 }}
      env:
        {{- range $name, $value := $env }}
        - name: {{ $name }}
          {{- kindIs "string" $value | ternary (dict "value" $value) $value | toYaml | nindent 10 }}
        {{- end }}
      {{- with concat $all.envFrom $values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: config
          mountPath: /etc/gateway/gateway.json
          subPath: gateway.json
          readOnly: true
        - name: tmp
          mountPath: /tmp
        {{- with concat $all.volumeMounts $values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .container }}
      {{- . | nindent 6 }}
      {{- end }}
      resources:
        {{- toYaml $values.resources | nindent 8 }}
    {{- with .extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ .config }}
    - name: tmp
      emptyDir:
        sizeLimit: 64Mi
    {{- with concat $all.volumes $values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
